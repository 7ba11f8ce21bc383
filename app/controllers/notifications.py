"""Outside the window: notifications of runs that ended or need a person, and progress in the task bar."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication

from app.controllers.background import Operation, OperationRunner
from app.controllers.shown_run import Showing
from app.models.run_list import RunList
from app.settings import NOTIFICATIONS, TASK_PROGRESS, Settings
from app.state.run_news import LiveRuns, RunNews, run_news
from app.state.task_progress import NO_PROGRESS, task_progress
from app.views.window.main_window import MainWindow
from app.views.window.outside_notice import OutsideNotices
from app.views.window.taskbar import TaskProgressBar
from core.run_folder.record import RunRecord
from core.run_folder.store import RunStore


class Notifications(QObject):
    """Watches every run of the list, not only the shown one."""

    def __init__(
        self,
        window: MainWindow,
        runs: RunList,
        showing: Showing,
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
        self._taskbar = TaskProgressBar(window)
        self.outside = OutsideNotices(window.windowIcon(), self)
        self.outside.clicked.connect(self._on_clicked)
        runs.listed.connect(self._on_listed)
        window.installEventFilter(self)

    def show_progress(self, *_: object) -> None:
        """Shows in the task bar how far the live run is, unless that is switched off."""
        entries = self._runs.model.entries() if self._settings.flag(TASK_PROGRESS, True) else ()
        self._taskbar.show(task_progress(entries, self._showing.run_dir))

    def close(self) -> None:
        """Takes tray icon and progress away."""
        self._taskbar.show(NO_PROGRESS)
        self.outside.close()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A window that is looked at needs no icon in the tray."""
        if watched is self._window and event.type() == QEvent.Type.WindowActivate:
            self.outside.clear()
        return super().eventFilter(watched, event)

    def _on_listed(self, *_: object) -> None:
        records = self._runs.model.records()
        self.show_progress()
        for record in self._live.changed(records):
            if self._settings.flag(NOTIFICATIONS, True) and not self._is_seen(record.path):
                self._tell(record)

    def _is_seen(self, run_dir: Path) -> bool:
        """Whether the window shows the run to a person just now."""
        return QApplication.activeWindow() is not None and self._showing.run_dir == run_dir

    def _tell(self, record: RunRecord) -> None:
        """Tells of a run once its evaluations are read."""

        def work() -> RunNews | None:
            from core.compare.figures import read_figures  # here: the window opens without it

            is_finished = record.entry.word == "finished"
            return run_news(record, read_figures(RunStore(record.path)) if is_finished else None)

        def done(news: RunNews | None) -> None:
            if news is not None:
                self.outside.show(news)

        self._runner.run(Operation(work, done, lambda _: None))

    def _on_clicked(self, run_dir: Path) -> None:
        window = self._window
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.show()
        window.raise_()
        window.activateWindow()
        self._showing.show(run_dir)
