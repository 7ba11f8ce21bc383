"""Outside the window: notifications of runs that ended or need a person, tray icon, and progress in the task bar."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget

from app.outside.run_news import LiveRuns, RunNews, run_news
from app.outside.task_progress import FAILED, IDLE, NO_PROGRESS, TaskProgress, task_progress, tray_status
from app.outside.tray import Tray
from app.runs.run_list import RunList
from app.settings import NOTIFICATIONS, TASK_PROGRESS, TRAY_ICON, Settings
from app.shown_run.shown_run_controller import ShownRunController
from app.threads.background import Operation, OperationRunner
from app.window.main_window import MainWindow
from core.run_folder.record import RunRecord
from core.run_folder.store import RunStore

if TYPE_CHECKING and sys.platform == "win32":
    from app.outside.taskbar_windows import ButtonProgress

_log = logging.getLogger(__name__)


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
        self._taskbar = TaskProgressBar(window)
        self._has_unread_failure = False
        self.tray = Tray(window.windowIcon(), self)
        self.tray.opened.connect(window.come_forward)
        self.tray.message_opened.connect(self._on_clicked)
        runs.listed.connect(self._on_listed)
        window.installEventFilter(self)

    def show_progress(self, *_: object) -> None:
        """Shows in task bar and tray how far live runs are, unless that is switched off."""
        entries = self._runs.model.entries()
        progress = NO_PROGRESS
        if self._settings.flag(TASK_PROGRESS, True):
            progress = task_progress(entries, self._showing.run_dir)
            if progress == NO_PROGRESS and self._has_unread_failure:
                progress = FAILED
        self._taskbar.show(progress)
        status = tray_status(entries, self._runs.model.name_of) if self._settings.flag(TRAY_ICON, True) else IDLE
        self.tray.show_status(status if self.tray.is_available() else IDLE)

    def close(self) -> None:
        """Takes tray icon and progress away."""
        self._taskbar.show(NO_PROGRESS)
        self.tray.close()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """For a window that is looked at nothing is unread."""
        if watched is self._window and event.type() == QEvent.Type.WindowActivate:
            self.tray.clear()
            if self._has_unread_failure:
                self._has_unread_failure = False
                self.show_progress()
        return super().eventFilter(watched, event)

    def _on_listed(self, *_: object) -> None:
        records = self._runs.model.records()
        for record in self._live.changed(records):
            if self._is_seen(record.path):
                continue
            self._has_unread_failure |= record.entry.word == "failed"
            if self._settings.flag(NOTIFICATIONS, True):
                self._tell(record)
        self.show_progress()

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
                self.tray.show_message(news)

        self._runner.run(Operation(work, done, lambda _: None))

    def _on_clicked(self, run_dir: Path) -> None:
        self._window.come_forward()
        self._showing.show(run_dir)


class TaskProgressBar:
    """Shows a window's progress on its button in Windows' task bar; other systems have no place for it.

    It reaches for that place with the first progress there is.
    """

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self._shown = NO_PROGRESS
        if sys.platform == "win32":
            self._button: ButtonProgress | None = None
            self._has_none = False

    def show(self, progress: TaskProgress) -> None:
        """Shows progress; the same as before costs nothing."""
        if progress == self._shown:
            return
        self._shown = progress
        if sys.platform == "win32" and not self._has_none:
            from app.outside.taskbar_windows import ButtonProgress, ComError

            try:
                self._button = self._button or ButtonProgress(int(self._window.winId()))
            except (ComError, OSError) as error:
                self._has_none = True
                _log.warning("no progress in the task bar: %s", error)
            else:
                self._button.show(progress)
