"""The plots of a run folder, as its window shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.charts.cards import Arrangement
from app.charts.plots_panel import PlotsPanel
from app.plots.chart import KEYS
from app.plots.curve_options import FIRST_SMOOTHING
from app.settings import Settings
from app.shown_run.run_data import RunData
from app.threads.bridge import Feed
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import Shape, write_lines

Make = Callable[[RunStore], PlotsPanel]
SIZE = (700, 560)


@pytest.fixture
def make_panel(qtbot: QtBot) -> Iterator[Make]:
    """For tests whose run grows, or is another than that of `panel`."""
    opened: list[RunData] = []

    def build(store: RunStore) -> PlotsPanel:
        panel = shown(store)
        opened.append(panel._data)
        qtbot.addWidget(panel)
        return panel

    yield build
    for data in opened:
        data.close()


@pytest.fixture(scope="module")
def _panel_of_file(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlotsPanel]:
    made = shown(write_lines(tmp_path_factory.mktemp("plots") / "run", Shape(steps=400)))
    Feed.close(made._data)  # its thread ends, what it has read stays
    yield made
    made.close()
    made.deleteLater()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def panel(qtbot: QtBot, _panel_of_file: PlotsPanel) -> PlotsPanel:
    """A run of 400 steps that is over: one panel for a whole file, in each test as if it had just been opened."""
    made = _panel_of_file
    made.resize(*SIZE)
    for frame in made.cards.frames.values():
        frame.enlarge.setChecked(False)
        frame.chart._table_at = None
        frame.chart.setAccessibleDescription(KEYS)
    if (focused := made.focusWidget()) is not None:
        focused.clearFocus()
    made.cards.arrange(Arrangement())
    made.cards.grid.verticalScrollBar().setValue(0)
    made.smoothing.set_strength(FIRST_SMOOTHING)
    made.log_box.setChecked(False)
    made.options.hidden.clear()
    made.mean_box.setChecked(False)
    made.set_axis("step")
    made.time_axis.set_cursor(None)
    made.cards.fit()
    settle(qtbot, made)
    return made


def shown(store: RunStore, settings: Settings | None = None) -> PlotsPanel:
    data = RunData()
    panel = PlotsPanel(data, settings)
    panel.resize(*SIZE)
    panel.show()
    data.open(store.dir)
    while not data.is_caught_up or panel._timer.isActive() or panel._stale:
        QTest.qWait(5)
    QApplication.processEvents()
    return panel


def settle(qtbot: QtBot, panel: PlotsPanel) -> None:
    qtbot.waitUntil(lambda: not panel._timer.isActive() and not panel._stale)
    QApplication.processEvents()
