"""Notice program: shows one notification as the window does, and says whether it was clicked.

``python -m app.views.window.notice_program SECONDS`` prints a JSON object: whether the system takes notifications, and
whether the person clicked this one in that time. A part of `rankdeck selftest`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.state.run_news import RunNews
from app.views.style.icons import app_icon
from app.views.window.app_identity import set_app_id, set_desktop_name
from app.views.window.outside_notice import OutsideNotices
from app.views.window.tray import Tray

NEWS = RunNews(Path(), "success", "Rankdeck self-test", "Click this notification.")


def main(seconds: float) -> int:
    """Shows it; returns 0 however it went."""
    set_app_id()
    application = QApplication([])
    set_desktop_name()
    clicked: list[object] = []
    tray = Tray(app_icon())
    notices = OutsideNotices(tray)
    notices.clicked.connect(clicked.append)
    notices.clicked.connect(application.quit)
    is_taken = notices.show(NEWS)
    if is_taken:
        QTimer.singleShot(int(seconds * 1000), application.quit)
        application.exec()
    notices.close()
    tray.close()
    print(json.dumps({"available": is_taken, "clicked": bool(clicked)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
