"""Icon in the system's tray: the state of live runs as its tooltip, and messages about runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QSystemTrayIcon

if TYPE_CHECKING:
    from app.outside.run_news import RunNews
    from core.run_folder.store import RunEntry

SHOWN_MS: Final = 15_000
# Windows shows no more than 127 characters.
LONGEST_TIP: Final = 120
_ICONS: Final = {
    "success": QSystemTrayIcon.MessageIcon.Information,
    "warning": QSystemTrayIcon.MessageIcon.Warning,
    "error": QSystemTrayIcon.MessageIcon.Critical,
}


def tray_status(entries: Sequence[RunEntry], name_of: Callable[[Path], str]) -> str:
    """The status of all live runs: the newest by name, all of them counted; empty without one."""
    live = [(entry.path, entry.state) for entry in entries if entry.state is not None and entry.state.is_live]
    if not live:
        return ""
    path, state = max(live, key=lambda run: run[1].created)
    share = f", {min(100, 100 * state.step // state.total_steps)} %" if state.total_steps and state.step else ""
    count = "" if len(live) == 1 else f"{len(live)} runs: "
    doing = f": {'needs you' if state.trouble else state.state}{share}"
    name, room = name_of(path), LONGEST_TIP - len(count) - len(doing)
    short = name if len(name) <= room else f"{name[: room - 1]}…"
    return f"{count}{short}{doing}"


class Tray(QObject):
    """An icon that is there while a run is live or a message is unread.

    Attributes:
        icon: Qt's icon; None before it is first needed.

    Signals:
        opened: The window is to come forward.
        message_opened: The run's folder of the newest message, which was clicked.
    """

    opened = Signal()
    message_opened = Signal(object)

    def __init__(self, sign: QIcon, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sign = sign
        self.icon: QSystemTrayIcon | None = None
        self._status = ""
        self._news: RunNews | None = None

    @staticmethod
    def is_available() -> bool:
        return QSystemTrayIcon.isSystemTrayAvailable()

    def show_status(self, status: str) -> None:
        if status != self._status:
            self._status = status
            self._show()

    def show_message(self, news: RunNews) -> None:
        """Show a message beside the icon, which stays until `clear`."""
        if not self.is_available():
            return
        self._news = news
        self._show()
        if self.icon is not None:
            self.icon.showMessage(news.title, news.text, _ICONS[news.kind], SHOWN_MS)

    def clear(self) -> None:
        """Forget the unread message: the window was looked at."""
        if self._news is not None:
            self._news = None
            self._show()

    def close(self) -> None:
        self._status, self._news = "", None
        self._show()

    def _show(self) -> None:
        status, news = self._status, self._news
        if not status and news is None:
            if self.icon is not None:
                self.icon.hide()
            return
        icon = self.icon or self._make()
        icon.setToolTip(status if status or news is None else news.title)
        icon.show()

    def _make(self) -> QSystemTrayIcon:
        self.icon = icon = QSystemTrayIcon(self._sign, self)
        icon.messageClicked.connect(self._on_clicked)
        icon.activated.connect(self._on_clicked)
        return icon

    def _on_clicked(self) -> None:
        if self._news is not None:
            self.message_opened.emit(self._news.run_dir)
        else:
            self.opened.emit()
