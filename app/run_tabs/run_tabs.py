"""The tabs below the plots: Samples, Log, Data progress, Config, Alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QTabWidget  # noqa: TID251  # its tab bar is a `TabBar`

from app.run_tabs.alerts_view import AlertsView
from app.run_tabs.config_view import ConfigView
from app.run_tabs.ledger_view import LedgerView
from app.run_tabs.log_view import LogView
from app.run_tabs.samples_view import SamplesView
from app.widgets.build import named
from app.widgets.steady import TabBar

if TYPE_CHECKING:
    from app.shown_run.rank_log import RankLog
    from core.machine.devices.names import RankNames

ROOM_PX: Final = 4


class RoomyTabBar(TabBar):
    """Fusion moves the text of a tab that lies behind down, and cuts its descenders off."""

    def tabSizeHint(self, index: int) -> QSize:
        return super().tabSizeHint(index) + QSize(0, ROOM_PX)


class RunTabs(QTabWidget):
    """Five views of the run that is shown."""

    def __init__(self, log: RankLog) -> None:
        super().__init__()
        self.samples = SamplesView()
        self.log = LogView(log)
        self.ledger = LedgerView()
        self.config = ConfigView()
        self.alerts = AlertsView()
        self.setTabBar(named(RoomyTabBar(), "Views of the run"))
        self.setDocumentMode(True)
        for view, name in (
            (self.samples, "Samples"),
            (self.log, "Log"),
            (self.ledger, "Data pro&gress"),
            (self.config, "&Config"),
            (self.alerts, "Alerts"),
        ):
            self.addTab(view, name)
        self.alerts.count_changed.connect(self._on_alerts_counted)
        self.setMinimumHeight(120)

    def show_names(self, names: RankNames) -> None:
        for view in (self.samples, self.log, self.alerts):
            view.show_names(names)

    def show_log(self, name: str | None = None) -> None:
        """Brings the log (of this file name, or the chosen one) to the front and the keyboard into its search."""
        if name is not None:
            self.log.choose(name)
        self.setCurrentWidget(self.log)
        self.log.search.setFocus()

    def _on_alerts_counted(self, many: int) -> None:
        self.setTabText(self.indexOf(self.alerts), f"Alerts {many}" if many else "Alerts")
