"""The page of a run: its header, how it ended, and its tabs, charts first."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from app.run.outcome_card import OutcomeCard
from app.run.run_header import RunHeader
from app.run_tabs.run_tabs import RunTabs
from app.widgets.build import lay_column

MARGIN: Final = 8


class PlotsPlace(QWidget):
    """The place of the plots; `painted` is emitted when it is seen for the first time."""

    painted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._is_due = True
        self.column = lay_column(self)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Asks for the plots once the window with its empty place is on the screen."""
        super().paintEvent(event)
        if self._is_due:
            self._is_due = False
            QTimer.singleShot(0, self, self.painted.emit)


class RunPage(QWidget):
    """Header, outcome and tabs of the run that is shown."""

    def __init__(self, header: RunHeader, outcome: OutcomeCard, tabs: RunTabs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.plots_place = PlotsPlace()
        tabs.insertTab(0, self.plots_place, "C&harts")
        tabs.setCurrentIndex(0)
        header.place_outcome(outcome.line)
        # The card stands last: what appears above the tabs would push their controls away from under the pointer.
        lay_column(self, header, tabs, outcome, spacing=MARGIN, margins=(MARGIN, 0, MARGIN, MARGIN), grow=tabs)

    def show_plots(self, plots: QWidget, controls: QWidget) -> None:
        self.plots_place.column.addWidget(controls)
        self.plots_place.column.addWidget(plots, 1)
        controls.show()
        plots.show()
