"""Frames a second while eight ranks of ten million points each are moved and zoomed, offscreen.

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

from app.models.run_data import RunData
from app.views.plots.plots_panel import PlotsPanel
from tests.helpers.synthetic_run import Shape, write_columns

pytestmark = [pytest.mark.benchmark, pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")]
FRAMES = 120


@pytest.fixture(params=[(2, 1_000_000), (8, 1_000_000), (8, 10_000_000)], ids=["2 x 1 M", "8 x 1 M", "8 x 10 M"])
def panel(request: pytest.FixtureRequest, tmp_path: Path, qtbot: QtBot) -> Iterator[PlotsPanel]:
    ranks, steps = request.param
    store = write_columns(tmp_path / "run", Shape(steps=steps, ranks=ranks, eval_every=steps // 200))
    data = RunData()
    panel = PlotsPanel(data)
    qtbot.addWidget(panel)
    panel.resize(1100, 760)
    panel.show()
    data.open(store.dir)
    qtbot.waitUntil(lambda: data.is_caught_up, timeout=60_000)
    qtbot.waitUntil(lambda: panel.time_axis.high == steps, timeout=10_000)
    yield panel
    data.close()


def frames(panel: PlotsPanel, move: Callable[[int], None]) -> list[tuple[float, float]]:
    """Milliseconds of each frame, every plot painted: by the clock, and of processor time."""
    took: list[tuple[float, float]] = []
    for number in range(FRAMES):
        began, used = time.perf_counter(), time.thread_time()
        move(number)
        for chart in panel.charts():
            chart.repaint()
        QApplication.processEvents()
        took.append(((time.perf_counter() - began) * 1e3, (time.thread_time() - used) * 1e3))
    return took


def test_moving_and_zooming(panel: PlotsPanel, request: pytest.FixtureRequest) -> None:
    axis = panel.time_axis
    axis.zoom(0.5)
    moving = frames(panel, lambda n: axis.pan(0.01 if n < FRAMES / 2 else -0.01))
    axis.fit()
    middle = (axis.low + axis.high) / 2.1
    zooming = frames(panel, lambda n: axis.zoom(0.88 if n < FRAMES / 2 else 1 / 0.88, middle))
    axis.fit()
    axis.zoom(0.02)
    near = frames(panel, lambda n: axis.pan(0.03 if n < FRAMES / 2 else -0.03))
    used = psutil.Process().memory_info().rss / 2**20
    print(f"\n{request.node.callspec.id} ({used:.0f} MiB):", end="")
    for words, took in (("moving", moving), ("zooming", zooming), ("moving a fiftieth", near)):
        clock, processor = (median(part) for part in zip(*took, strict=True))
        print(f" {words} {1000 / clock:.0f} frames/s ({1000 / processor:.0f} by processor time)", end=";")
    print()
