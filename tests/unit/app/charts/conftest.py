"""The plots of a run folder, as its window shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.charts.plots_panel import PlotsPanel
from app.shown_run.run_data import RunData
from core.run_folder.store import RunStore

Make = Callable[[RunStore], PlotsPanel]


@pytest.fixture
def make_panel(qtbot: QtBot) -> Iterator[Make]:
    opened: list[RunData] = []

    def build(store: RunStore) -> PlotsPanel:
        data = RunData()
        opened.append(data)
        panel = PlotsPanel(data)
        qtbot.addWidget(panel)
        panel.resize(700, 560)
        panel.show()
        data.open(store.dir)
        qtbot.waitUntil(lambda: data.is_caught_up)
        settle(qtbot, panel)
        return panel

    yield build
    for data in opened:
        data.close()


def settle(qtbot: QtBot, panel: PlotsPanel) -> None:
    qtbot.waitUntil(lambda: not panel._timer.isActive() and not panel._stale)
    QApplication.processEvents()
