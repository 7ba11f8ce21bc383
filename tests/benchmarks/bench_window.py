"""From the start of a process to the painted window, what it weighs, and how long the GUI thread was ever held up.

pytest -m benchmark -s tests/benchmarks/bench_window.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from core.processes.program_environment import program_environment
from tests.helpers.synthetic_run import Shape, write_columns, write_lines

pytestmark = pytest.mark.benchmark
ROUNDS = 5

PLAIN = """
import json, sys, time
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow
class First(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            print(json.dumps({"painted": time.time()})); QTimer.singleShot(0, app.quit)
        return False
app = QApplication([])
window, first = QMainWindow(), First()
window.installEventFilter(first)
window.resize(1320, 840)
window.show()
app.exec()
"""

WINDOW = """
import gc
gc.disable()  # as app.__main__ does
from app.__main__ import import_before_qt
import_before_qt()
import json, sys, time
from pathlib import Path
import psutil
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication
from app.main import Rankdeck
from app.settings import settings_in
from app.style.theme import Theme
marks = {"imported": time.time()}
class Watch(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and "painted" not in marks:
            marks["painted"] = time.time()
            QTimer.singleShot(0, begin)
        return False
app = QApplication([])
Theme(app)
place = Path(sys.argv[1])
rankdeck = Rankdeck(settings_in(place / "settings.ini"), place / "runs")
if len(sys.argv) > 2:
    rankdeck.settings.set_text("last_run", sys.argv[2])
watch = Watch()
rankdeck.window.installEventFilter(watch)
rankdeck.open()
gc.freeze()
gc.enable()
marks["opened"] = time.time()
late = {"at": 0.0, "most": 0.0}
def begin():
    # The first painting is part of the time to the window; from here on a person could be kept waiting.
    late["at"] = time.monotonic()
    timer.start()
def beat():
    now = time.monotonic()
    late["most"] = max(late["most"], now - late["at"] - 0.005)
    late["at"] = now
timer = QTimer(); timer.setInterval(5); timer.timeout.connect(beat)
def end():
    marks["MiB"] = psutil.Process().memory_info().rss / 2**20
    marks["late_ms"] = late["most"] * 1000
    marks["rows"] = rankdeck.data.series.rank(0).rows
    timer.stop()
    rankdeck.window.close_now()
    app.quit()
QTimer.singleShot(3000, end)
app.exec()
print(json.dumps(marks))
"""


def run_once(code: str, *arguments: object) -> dict[str, Any]:
    began = time.time()
    environment = program_environment(os.environ, {"QT_QPA_PLATFORM": "offscreen"})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed Rankdeck compiles its modules once
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    marks: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    for name in ("imported", "opened", "painted"):
        if name in marks:
            marks[name] -= began
    return marks


def middle(found: list[dict[str, Any]], name: str) -> float:
    return median(marks[name] for marks in found)


def test_time_to_the_painted_window(tmp_path: Path) -> None:
    """Alternating with an empty Qt window, so that both meet the same noise."""
    (tmp_path / "runs").mkdir()
    for code in (PLAIN, WINDOW):
        run_once(code, tmp_path)  # warm the disk's cache
    plain, ours = [], []
    for _ in range(ROUNDS):
        plain.append(run_once(PLAIN))
        ours.append(run_once(WINDOW, tmp_path))
    bare = middle(plain, "painted")
    print(
        f"\nwindow painted {middle(ours, 'painted'):.2f} s after the process began "
        f"(an empty Qt window: {bare:.2f} s, ratio {middle(ours, 'painted') / bare:.1f}; "
        f"imports {middle(ours, 'imported'):.2f} s), "
        f"{middle(ours, 'MiB'):.0f} MiB, GUI thread late by at most {middle(ours, 'late_ms'):.0f} ms in 3 s"
    )
    assert all(marks["rows"] == 0 for marks in ours)


@pytest.mark.parametrize(("steps", "runs"), [(1_000_000, 1), (2_000, 300)])
def test_opening_with_runs(tmp_path: Path, steps: int, runs: int) -> None:
    place = tmp_path / "runs"
    shown = place / "run 0"
    write_columns(shown, Shape(steps=steps))
    for number in range(1, runs):
        write_lines(place / f"run {number}", Shape(steps=2))
    run_once(WINDOW, tmp_path, shown)
    found = [run_once(WINDOW, tmp_path, shown) for _ in range(3)]
    print(
        f"\n{runs} runs, {steps:,} steps shown: painted {middle(found, 'painted'):.2f} s, "
        f"{middle(found, 'MiB'):.0f} MiB, GUI thread late by at most {middle(found, 'late_ms'):.0f} ms in 3 s"
    )
    assert all(marks["rows"] == steps for marks in found)
