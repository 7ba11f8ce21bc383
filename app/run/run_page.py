"""The page of a run: its header, how it ended, and its tabs, charts first."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from app.run.outcome_card import OutcomeCard
from app.run.run_header import RunHeader
from app.run_tabs.run_tabs import RunTabs
from app.widgets.build import lay_column

MARGIN: Final = 8
CONTROLS_GAP: Final = 24


class PlotsPlace(QWidget):
    """Where the plots will be, with a row for their controls where the row of tabs has no room for them.

    Signals:
        painted: It was seen for the first time.
    """

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
    """Header, outcome and tabs of the run that is shown.

    Args:
        header: Of the run.
        outcome: How it ended.
        tabs: Its views.
    """

    def __init__(self, header: RunHeader, outcome: OutcomeCard, tabs: RunTabs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.plots_place = PlotsPlace()
        self._tabs = tabs
        self._controls: QWidget | None = None
        tabs.insertTab(0, self.plots_place, "C&harts")
        tabs.setCurrentIndex(0)
        header.place_outcome(outcome.line)
        # The card stands last: what appears above the tabs would push their controls away from under the pointer.
        lay_column(self, header, tabs, outcome, spacing=MARGIN, margins=(MARGIN, 0, MARGIN, MARGIN), grow=tabs)
        tabs.currentChanged.connect(self._place_controls)
        tabs.installEventFilter(self)

    def show_plots(self, plots: QWidget, controls: QWidget) -> None:
        """Puts the plots into their tab, and their controls beside the tabs."""
        self.plots_place.column.addWidget(plots, 1)
        self._controls = controls
        plots.show()
        self._place_controls()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Moves the controls when the row of tabs gets wider or narrower, or when they or a tab need more room."""
        if watched is self._tabs and event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self._place_controls()
        return super().eventFilter(watched, event)

    def _place_controls(self, *_: object) -> None:
        controls, tabs = self._controls, self._tabs
        if controls is None:
            return
        corner = Qt.Corner.TopRightCorner
        beside = tabs.tabBar().sizeHint().width() + CONTROLS_GAP + controls.sizeHint().width() <= tabs.width()
        if beside and tabs.cornerWidget(corner) is not controls:
            self.plots_place.column.removeWidget(controls)
            tabs.setCornerWidget(controls, corner)
        elif not beside and self.plots_place.column.indexOf(controls) < 0:
            tabs.setCornerWidget(None, corner)  # type: ignore[arg-type]  # Qt takes null for "none"
            self.plots_place.column.insertWidget(0, controls)
        controls.setVisible(not beside or tabs.currentWidget() is self.plots_place)
