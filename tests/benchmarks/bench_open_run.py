"""From the start of a process to the first picture of a long run, with the whole window around it.

pytest -m benchmark -s tests/benchmarks/bench_open_run.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from core.processes.program_environment import program_environment
from tests.helpers.synthetic_run import Shape, write_columns

pytestmark = pytest.mark.benchmark
ROUNDS = 5

WHOLE = """
import gc, sys, time
gc.disable()  # as app.__main__ does
try:
    from app.__main__ import import_before_qt
    import_before_qt()
except ImportError:  # an earlier Rankdeck, measured in turns with this one
    pass
marks = {}
from pathlib import Path
import json
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication
marks["Qt"] = time.time()
import psutil
from app.threads.garbage import GarbageCollection
from app.main import Rankdeck
from tests.helpers.settings_file import settings_in
from app.style.theme import Theme
marks["imports"] = time.time()
app = QApplication([])
Theme(app)
place = Path(sys.argv[1]).parent
rankdeck = Rankdeck(settings_in(place.parent / "settings.ini"), place)
rankdeck.settings.set_text("last_run", sys.argv[1])
window = rankdeck.window
charts = []
class Painted(QObject):
    # A chart paints within the painting of its window: the picture is there once every chart had its turn.
    seen = set()
    def eventFilter(self, viewport, event):
        chart = viewport.parent()
        if event.type() == QEvent.Type.Paint and rankdeck.data.series.rank(0).rows and chart.scale is not None:
            self.seen.add(chart.accessibleName())
            if len(self.seen) == len(charts) and "picture" not in marks:
                QTimer.singleShot(0, drawn)
        return False
class First(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and "window" not in marks:
            QTimer.singleShot(0, begin)
        return False
stays = {"at": 0.0, "most": 0.0}
def begin():
    if "window" not in marks:
        marks["window"] = time.time()
        stays["at"] = time.perf_counter()
        beats.start(1)
def beat():
    # Whatever is done between two beats kept the person waiting.
    now = time.perf_counter()
    stays["most"] = max(stays["most"], now - stays["at"] - 0.001)
    stays["at"] = now
beats = QTimer()
beats.timeout.connect(beat)
def drawn():
    if "picture" not in marks:
        marks["picture"] = time.time()
        QTimer.singleShot(2000, end)
def end():
    marks["MiB"] = psutil.Process().memory_info().rss / 2**20
    marks["longest_ms"] = stays["most"] * 1000
    beats.stop()
    marks["rows"] = rankdeck.data.series.rank(0).rows
    window.close_now()
    app.quit()
painted, first = Painted(), First()
window.installEventFilter(first)
def watch():
    # The charts are made once the window is painted.
    if not charts:
        plots = window.plots
        charts.extend((plots.loss.chart, plots.cards.frame("throughput").chart, plots.cards.frame("step_time").chart))
        for chart in charts:
            chart.viewport().installEventFilter(painted)
window.plot_drawn.connect(watch)
rankdeck.deferred.due.connect(GarbageCollection(rankdeck).start)
rankdeck.open()
marks["opened"] = time.time()
app.exec()
print(json.dumps(marks))
"""


def open_once(run_dir: Path) -> dict[str, Any]:
    began = time.time()
    environment = program_environment(os.environ, {"QT_QPA_PLATFORM": "offscreen"})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed Rankdeck compiles its modules once
    done = subprocess.run(
        [sys.executable, "-c", WHOLE, str(run_dir)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    marks = json.loads(done.stdout)
    return {name: value - began if value > 1e9 else value for name, value in marks.items()}


@pytest.mark.parametrize("steps", [1000, 1_000_000, 10_000_000])
def test_first_picture_of_the_whole_window(tmp_path: Path, steps: int) -> None:
    """With the list of runs, sheet, tabs and devices around it, as a person meets it after a restart."""
    place = tmp_path / "runs"
    store = write_columns(place / "run", Shape(steps=steps, ranks=2, eval_every=max(10, steps // 1000)))
    open_once(store.dir)  # warm the disk's cache
    rounds = [open_once(store.dir) for _ in range(ROUNDS)]
    best = {name: min(marks[name] for marks in rounds) for name in rounds[0]}
    words = ", ".join(f"{name} {best[name]:.2f} s" for name in ("Qt", "imports", "opened", "window", "picture"))
    print(f"\n{steps:,} steps, whole window: {words} after the process began; {best['MiB']:.0f} MiB", end="")
    print(f"; longest stay on the GUI thread {best['longest_ms']:.0f} ms (each the best of {ROUNDS})", end="")
    print(f"; pictures up to {max(marks['picture'] for marks in rounds):.2f} s")
    assert all(marks["rows"] == steps for marks in rounds)
