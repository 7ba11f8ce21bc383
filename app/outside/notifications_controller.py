"""Notifications of runs that ended or need a person, and the tray icon of live runs."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication

from app.outside.run_news import LiveRuns, RunNews, run_news
from app.outside.tray import Tray, tray_status
from app.runs.run_list import RunList
from app.settings import NOTIFICATIONS, TRAY_ICON, Settings
from app.shown_run.shown_run_controller import ShownRunController
from app.threads.background import Operation, OperationRunner
from app.window.main_window import MainWindow
from core.run_folder.record import RunRecord


class NotificationsController(QObject):
    """Watches every run of the list, not only the shown one."""

    def __init__(
        self,
        window: MainWindow,
        runs: RunList,
        showing: ShownRunController,
        settings: Settings,
        runner: OperationRunner,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._runs = runs
        self._showing = showing
        self._settings = settings
        self._runner = runner
        self._live = LiveRuns()
        self.tray = Tray(window.windowIcon(), self)
        self.tray.opened.connect(window.come_forward)
        self.tray.message_opened.connect(self._on_clicked)
        runs.listed.connect(self._on_listed)
        window.installEventFilter(self)

    def show_status(self, *_: object) -> None:
        """Show live runs in the tray, unless that is switched off."""
        is_shown = self._settings.flag(TRAY_ICON, True) and self.tray.is_available()
        model = self._runs.model
        self.tray.show_status(tray_status(model.entries(), model.name_of) if is_shown else "")

    def close(self) -> None:
        self.tray.close()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window and event.type() == QEvent.Type.WindowActivate:
            self.tray.clear()
        return super().eventFilter(watched, event)

    def _on_listed(self, *_: object) -> None:
        records = self._runs.model.records()
        for record in self._live.changed(records):
            if not self._is_seen(record.path) and self._settings.flag(NOTIFICATIONS, True):
                self._tell(record)
        self.show_status()

    def _is_seen(self, run_dir: Path) -> bool:
        """Whether the window shows the run to a person now."""
        return QApplication.activeWindow() is not None and self._showing.run_dir == run_dir

    def _tell(self, record: RunRecord) -> None:
        def done(news: RunNews | None) -> None:
            if news is not None:
                self.tray.show_message(news)

        # In a thread: NumPy is imported with the texts of a run's end.
        self._runner.run(Operation(lambda: run_news(record), done, lambda _: None))

    def _on_clicked(self, run_dir: Path) -> None:
        self._window.come_forward()
        self._showing.show(run_dir)
