"""Notice program: shows one notification and says whether it was clicked; a part of `rankdeck selftest`.

``python -m app.views.window.notice_program SECONDS`` prints a JSON object: whether the system takes notifications, and
whether the person clicked this one in that time.
"""

from __future__ import annotations

import json
import sys

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QStyle, QSystemTrayIcon


def main(seconds: float) -> int:
    """Shows it; returns 0 however it went."""
    application = QApplication([])
    if not QSystemTrayIcon.isSystemTrayAvailable():
        print(json.dumps({"available": False, "clicked": False}), flush=True)
        return 0
    clicked = False

    def on_clicked() -> None:
        nonlocal clicked
        clicked = True
        application.quit()

    tray = QSystemTrayIcon(application.style().standardIcon(QStyle.StandardPixmap.SP_ComputerIcon))
    tray.messageClicked.connect(on_clicked)
    tray.show()
    tray.showMessage("Rankdeck self-test", "Click this notification.", QSystemTrayIcon.MessageIcon.Information)
    QTimer.singleShot(int(seconds * 1000), application.quit)
    application.exec()
    tray.hide()
    print(json.dumps({"available": True, "clicked": clicked}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
