"""Task-bar progress: on the window's button under Windows, on the launcher's icon where a Linux desktop has one."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Final, Protocol

from PySide6.QtWidgets import QWidget

from app.state.task_progress import NO_PROGRESS, TaskProgress, TaskState

if TYPE_CHECKING:
    from PySide6.QtDBus import QDBusConnection

APPLICATION: Final = "application://rankdeck.desktop"
LAUNCHER: Final = "com.canonical.Unity.LauncherEntry"
_log = logging.getLogger(__name__)


class Taskbar(Protocol):
    """A place that shows how far a run is."""

    def show(self, progress: TaskProgress) -> None:
        """Shows other progress, or none."""


class NoTaskbar:
    """A system without one."""

    def show(self, progress: TaskProgress) -> None:
        """Does nothing."""


class LauncherEntry:
    """The launcher of Unity, GNOME's dock and KDE's panel, told by a signal on the session bus."""

    def __init__(self, bus: QDBusConnection) -> None:
        self._bus = bus

    def show(self, progress: TaskProgress) -> None:
        """Sends the signal; nothing waits for an answer."""
        from PySide6.QtDBus import QDBusMessage  # here: without a bus it is not needed

        message = QDBusMessage.createSignal("/com/canonical/unity/launcherentry/1", LAUNCHER, "Update")
        message.setArguments([APPLICATION, launcher_values(progress)])
        self._bus.send(message)


def launcher_values(progress: TaskProgress) -> dict[str, object]:
    """What the launcher is told. It has no bar without a share, and no colours: an error asks for attention."""
    has_share = progress.state not in (TaskState.NONE, TaskState.BUSY)
    return {
        "progress": float(progress.share),
        "progress-visible": has_share,
        "urgent": progress.state is TaskState.ERROR,
    }


def taskbar_for(window_id: int) -> Taskbar:
    """The system's place for progress; one that does nothing where there is none or it cannot be reached."""
    if sys.platform == "win32":
        from app.views.window.taskbar_windows import ButtonProgress, ComError

        try:
            return ButtonProgress(window_id)
        except (ComError, OSError) as error:
            _log.warning("no progress in the task bar: %s", error)
            return NoTaskbar()
    if sys.platform == "linux" and os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        try:
            from PySide6.QtDBus import QDBusConnection
        except ImportError:
            return NoTaskbar()
        bus = QDBusConnection.sessionBus()
        if bus.isConnected():
            return LauncherEntry(bus)
    return NoTaskbar()


class TaskProgressBar:
    """Shows a window's progress where the system can; reaches for that place with the first progress there is."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self._taskbar: Taskbar | None = None
        self._shown = NO_PROGRESS

    def show(self, progress: TaskProgress) -> None:
        """Shows progress; the same as before costs nothing."""
        if progress == self._shown:
            return
        if self._taskbar is None:
            self._taskbar = taskbar_for(int(self._window.winId()))
        self._shown = progress
        self._taskbar.show(progress)
