"""A notification service on a session bus, and news shown on it: `dbus-run-session -- python -m …`.

Prints what `Notify` was called with and then the run that a click on it opens, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QTimer
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusVirtualObject
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from app.state.run_news import RunNews
from app.views.window.outside_notice import PATH, SERVICE, OutsideNotices
from app.views.window.tray import Tray

NUMBER = 7
LIMIT_MS = 20_000


class Service(QDBusVirtualObject):
    """Takes a message, and clicks on it a moment later."""

    def __init__(self, bus: QDBusConnection) -> None:
        super().__init__()
        self.bus = bus
        self.got: list[object] = []

    def introspect(self, _path: str) -> str:
        return ""

    def handleMessage(self, message: QDBusMessage, connection: QDBusConnection) -> bool:
        if message.member() != "Notify":
            return False
        self.got = [message.signature(), *message.arguments()[:5]]
        connection.send(message.createReply(NUMBER))
        QTimer.singleShot(500, self.click)
        return True

    def click(self) -> None:
        signal = QDBusMessage.createSignal(PATH, SERVICE, "ActionInvoked")
        signal.setArguments([NUMBER, "default"])
        self.bus.send(signal)


def main() -> int:
    """Shows one piece of news and waits for the click."""
    application = QApplication([])
    bus = QDBusConnection.connectToBus(QDBusConnection.BusType.SessionBus, "service")
    service = Service(bus)
    if not bus.registerVirtualObject(PATH, service) or not bus.registerService(SERVICE):
        return 3
    notices = OutsideNotices(Tray(QIcon()))
    opened: list[str] = []
    notices.clicked.connect(lambda run_dir: (opened.append(run_dir.name), application.quit()))
    notices.show(RunNews(Path("runs/a"), "success", 'a "quoted" run finished.', "Line 1\nLine 2 \\ [x]"))
    QTimer.singleShot(LIMIT_MS, application.quit)
    application.exec()
    notices.close()
    print(json.dumps({"got": service.got, "opened": opened}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
