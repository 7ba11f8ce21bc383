"""Task-bar progress on the window's button, under Windows; other systems have no place for it."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from app.outside.task_progress import NO_PROGRESS, TaskProgress

if TYPE_CHECKING and sys.platform == "win32":
    from app.outside.taskbar_windows import ButtonProgress

_log = logging.getLogger(__name__)


class TaskProgressBar:
    """Shows a window's progress where the system can; reaches for that place with the first progress there is."""

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
