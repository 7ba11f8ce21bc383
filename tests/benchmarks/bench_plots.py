"""Frames a second while the main window's charts are moved and zoomed, offscreen: two and eight ranks, 1 M and 10 M.

pytest -m benchmark -s tests/benchmarks/bench_plots.py
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import psutil
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.charts.plots_panel import PlotsPanel
from app.main import Rankdeck
from tests.helpers import synthetic_run
from tests.helpers.settings_file import settings_in
from tests.helpers.synthetic_run import Shape, write_columns
from tests.helpers.window_fixture import shut

pytestmark = [pytest.mark.benchmark, pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")]
FRAMES = 120


@pytest.fixture(params=[(2, 1_000_000), (8, 1_000_000), (8, 10_000_000)], ids=["2 x 1 M", "8 x 1 M", "8 x 10 M"])
def panel(
    request: pytest.FixtureRequest, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PlotsPanel]:
    """The charts of the main window as it opens, in its own size; what is printed says how many are in sight."""
    ranks, steps = request.param
    monkeypatch.setattr(synthetic_run, "UUIDS", tuple(f"GPU-{n}" for n in range(ranks)))
    store = write_columns(tmp_path / "runs" / "run", Shape(steps=steps, ranks=ranks, eval_every=steps // 200))
    rankdeck = Rankdeck(settings_in(tmp_path / "settings.ini"), tmp_path / "runs")
    rankdeck.settings.set_text("last_run", str(store.dir))
    rankdeck.open()
    data = rankdeck.data
    qtbot.waitUntil(lambda: data.is_open and data.is_caught_up and bool(data.series.ranks()), timeout=60_000)
    qtbot.waitUntil(lambda: rankdeck.window.plots.time_axis.high == steps, timeout=10_000)
    qtbot.waitUntil(lambda: len(rankdeck.window.plots.charts()) >= 3, timeout=10_000)
    qtbot.wait(1500)  # what a window does after its first picture
    yield rankdeck.window.plots
    shut(rankdeck)


def frames(move: Callable[[int], None]) -> list[tuple[float, float]]:
    """Milliseconds of each frame, every plot painted: by the clock, and of processor time."""
    took: list[tuple[float, float]] = []
    for number in range(FRAMES):
        began, used = time.perf_counter(), time.thread_time()
        move(number)
        QApplication.processEvents()
        took.append(((time.perf_counter() - began) * 1e3, (time.thread_time() - used) * 1e3))
    return took


def test_moving_and_zooming(panel: PlotsPanel, request: pytest.FixtureRequest) -> None:
    axis = panel.time_axis
    axis._leader.zoom_by_hand(0.5)
    moving = frames(lambda n: axis._leader.move_by_hand(0.01 if n < FRAMES / 2 else -0.01))
    axis.fit()
    middle = (axis.low + axis.high) / 2.1
    zooming = frames(lambda n: axis._leader.zoom_by_hand(0.88 if n < FRAMES / 2 else 1 / 0.88, middle))
    axis.fit()
    axis._leader.zoom_by_hand(0.02)
    near = frames(lambda n: axis._leader.move_by_hand(0.03 if n < FRAMES / 2 else -0.03))
    used = psutil.Process().memory_info().rss / 2**20
    charts = panel.charts()
    seen = sum(not chart.viewport().visibleRegion().isEmpty() for chart in charts)
    size = panel.window().size()
    shown = f"{seen} of {len(charts)} charts in sight, window of {size.width()} x {size.height()}"
    print(f"\n{request.node.callspec.id} ({used:.0f} MiB; {shown}):", end="")
    for words, took in (("moving", moving), ("zooming", zooming), ("moving a fiftieth", near)):
        clock, processor = (median(part) for part in zip(*took, strict=True))
        print(f" {words} {1000 / clock:.0f} frames/s ({1000 / processor:.0f} by processor time)", end=";")
    print()
