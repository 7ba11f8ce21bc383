"""What 1,000 runs cost in the list: to fill it, to filter it at each key, to look again, to scroll; and its memory.

pytest -m benchmark -s tests/benchmarks/bench_run_list.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psutil
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.runs.run_list import RunList
from app.runs.run_scanner import RunScanner
from app.runs.runs_panel import RunsPanel
from core.run_folder.notes import RunNotes, write_notes
from tests.helpers.synthetic_run import make_many_runs

pytestmark = pytest.mark.benchmark
RUNS = 1000
WORDS = "MiniGPT failed"
SETTING = "lr>5e-4 state:finished"


def ms(work: Callable[[], object]) -> float:
    """Milliseconds of the GUI thread's processor time until it is painted: a busy machine does not count."""
    began = time.thread_time()
    work()
    QApplication.processEvents()
    return 1000 * (time.thread_time() - began)


def typed(panel: RunsPanel, text: str) -> list[float]:
    panel.filter.clear()
    QApplication.processEvents()
    times = [ms(lambda end=end: panel.filter.setText(text[:end])) for end in range(1, len(text) + 1)]
    return [*times, ms(panel.filter.clear)]


def test_a_thousand_runs(tmp_path: Path, qtbot: QtBot) -> None:
    make_many_runs(tmp_path, RUNS)
    process = psutil.Process()
    runs = RunList()
    runs.settings_read.connect(lambda: None)
    panel = RunsPanel(runs.model)
    qtbot.addWidget(panel)
    panel.resize(264, 860)
    panel.show()
    QApplication.processEvents()
    before = process.memory_info().rss
    began, busy = time.perf_counter(), time.thread_time()
    runs.open(tmp_path)
    qtbot.waitUntil(lambda: runs.model.rowCount() == RUNS, timeout=30_000)
    QApplication.processEvents()
    filled, busy = time.perf_counter() - began, time.thread_time() - busy
    print(f"\nfill: {1000 * filled:.0f} ms from the first look at the folder to {RUNS:,} rows painted", end="")
    print(f", {1000 * busy:.0f} ms of them of the GUI thread")
    keys = typed(panel, WORDS)
    print(f"filter by words: {median(keys):.1f} ms a key, at most {max(keys):.1f}")
    with qtbot.waitSignal(runs.settings_read, timeout=30_000):
        began = time.perf_counter()
        runs.want_settings()
    print(f"settings of all runs read in {1000 * (time.perf_counter() - began):.0f} ms, in the background")
    keys = typed(panel, SETTING)
    assert runs.model.rowCount() == RUNS
    print(f"filter by setting: {median(keys):.1f} ms a key, at most {max(keys):.1f}")
    bar = panel.view.verticalScrollBar()
    steps = [ms(lambda at=at: bar.setValue(at)) for at in range(0, bar.maximum(), max(1, bar.maximum() // 200))]
    print(f"scrolling: {median(steps):.1f} ms a step, at most {max(steps):.1f}")
    memory = (process.memory_info().rss - before) / 2**20
    print(f"memory: {memory:.1f} MiB with settings and curves")
    runs.close()


def test_looking_again(tmp_path: Path) -> None:
    make_many_runs(tmp_path, RUNS, age_s=60.0)
    scanner = RunScanner(tmp_path)
    began = time.process_time()  # processor time throughout
    rows = scanner.scan()
    first = time.process_time() - began
    time.sleep(3.1)  # what was just written is looked into again
    idle = []
    for _ in range(10):
        began = time.process_time()
        assert [a is b for a, b in zip(scanner.scan(), rows, strict=True)].count(False) == 0
        idle.append(time.process_time() - began)
    write_notes(rows[500].path, RunNotes(name="another"))
    began = time.process_time()
    assert sum(a is not b for a, b in zip(scanner.scan(), rows, strict=True)) == 1
    one = time.process_time() - began
    at_first, same, changed = (f"{1000 * seconds:.1f} ms" for seconds in (first, median(idle), one))
    print(
        f"\nscan of {RUNS:,}: {at_first} at first, {same} when nothing changed, {changed} when one run did (processor)"
    )
