"""Notifications outside the window: the system's tray, or on Linux its notification service; else none.

PySide's D-Bus cannot send the unsigned numbers that the service's `Notify` asks for, so GLib's `gdbus` makes that
call; whether the notification was clicked is heard by PySide.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import SLOT, QObject, QProcess, Signal, Slot

if TYPE_CHECKING:
    from app.state.run_news import RunNews
    from app.views.window.tray import Tray

SERVICE: Final = "org.freedesktop.Notifications"
PATH: Final = "/org/freedesktop/Notifications"
_NUMBER: Final = re.compile(r"(\d+),?\)\s*$")
_log = logging.getLogger(__name__)


class OutsideNotices(QObject):
    """Shows news where the system shows notifications. It never fails: what cannot be shown is left out.

    Args:
        tray: The tray's icon.

    Signals:
        clicked: The run's folder of news that was clicked.
    """

    clicked = Signal(object)

    def __init__(self, tray: Tray, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tray = tray
        tray.message_opened.connect(self._on_message_opened)
        self._newest: RunNews | None = None
        self._sent: dict[int, RunNews] = {}
        self._calls: set[QProcess] = set()
        self._listens = False

    def show(self, news: RunNews) -> bool:
        """Shows news; False where this system takes none."""
        if self._tray.is_available():
            self._newest = news
            self._tray.show_message(news)
            return True
        return sys.platform == "linux" and bool(os.environ.get("DBUS_SESSION_BUS_ADDRESS")) and self._send(news)

    def close(self) -> None:
        """Ends what is under way."""
        for call in list(self._calls):
            call.kill()
            call.waitForFinished(1000)

    def _on_message_opened(self) -> None:
        if self._newest is not None:
            self.clicked.emit(self._newest.run_dir)

    def _send(self, news: RunNews) -> bool:
        program = shutil.which("gdbus")
        if program is None or not self._listen():
            return False
        call = QProcess(self)
        call.finished.connect(lambda *_: self._on_sent(call, news))
        call.errorOccurred.connect(lambda *_: self._calls.discard(call))
        self._calls.add(call)
        target = ("call", "--session", "--dest", SERVICE, "--object-path", PATH, "--method", f"{SERVICE}.Notify")
        texts = (_quoted("Rankdeck"), "uint32 0", _quoted(""), _quoted(news.title), _quoted(news.text))
        call.start(program, [*target, *texts, "['default', 'Open']", "@a{sv} {}", "int32 -1"])
        return True

    def _listen(self) -> bool:
        """Hears of clicks from now on; False where there is no bus."""
        if not self._listens:
            try:
                from PySide6.QtDBus import QDBusConnection  # here: only news on Linux needs it
            except ImportError:
                return False
            bus = QDBusConnection.sessionBus()
            slot = SLOT("_on_invoked(QDBusMessage)")
            self._listens = bus.isConnected() and bus.connect(
                "",
                PATH,
                SERVICE,
                "ActionInvoked",
                self,
                slot,  # type: ignore[call-overload]  # SLOT gives text
            )
        return self._listens

    def _on_sent(self, call: QProcess, news: RunNews) -> None:
        """Keeps the number that the service gave, by which it tells of a click."""
        self._calls.discard(call)
        found = _NUMBER.search(bytes(call.readAllStandardOutput().data()).decode("utf-8", "replace"))
        if found:
            self._sent[int(found[1])] = news
        else:
            _log.info("the notification service took no message")
        call.deleteLater()

    @Slot("QDBusMessage")
    def _on_invoked(self, message: object) -> None:
        arguments = message.arguments()  # type: ignore[attr-defined]
        news = self._sent.pop(arguments[0], None) if arguments else None
        if news is not None:
            self.clicked.emit(news.run_dir)


def _quoted(text: str) -> str:
    """Text as gdbus reads it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
