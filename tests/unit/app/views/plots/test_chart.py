"""One chart in its window: what is painted when, and what stands in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.run_data.metrics_batch import MetricsBatch
from app.views.plots.chart import Chart
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import START_S, Shape, write_lines
from tests.unit.app.views.plots.conftest import Make, settle

pytestmark = [pytest.mark.windows, pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")]


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    return write_lines(tmp_path / "run", Shape(steps=400, eval_every=40))


class Paints(QObject):
    """Counts the paint events of widgets."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[QObject] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            self.seen.append(watched)
        return False


def test_a_move_paints_each_chart_once(make_panel: Make, run: RunStore, qtbot: QtBot) -> None:
    panel = make_panel(run)
    panel.time_axis.zoom(0.5)
    settle(qtbot, panel)
    paints = Paints()
    painted = [chart.viewport() if isinstance(chart, Chart) else chart for chart in panel.charts()]
    viewports = [widget for widget in painted if not widget.visibleRegion().isEmpty()]
    for viewport in viewports:
        viewport.installEventFilter(paints)
    panel.time_axis.pan(0.05)
    for _ in range(3):
        QApplication.processEvents()
    assert len(viewports) >= 3
    assert {paints.seen.count(viewport) for viewport in viewports} == {1}


def test_marks_stand_at_their_time_on_the_time_axis(make_panel: Make, run: RunStore) -> None:
    panel = make_panel(run)
    event = {"event": "commit", "ts": START_S + 5, "step": 100, "checkpoint": 1}
    panel._data.series.apply(MetricsBatch(events=[event]))
    panel._redraw()
    marks = panel.loss.chart.marks
    panel.set_axis("ts")
    assert marks.place(marks.marks[0]) == START_S + 5
    panel.set_axis("step")
    assert marks.place(marks.marks[0]) == 100
