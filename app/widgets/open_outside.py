"""Opens folders, files and web pages with the desktop's own programs, and reports it if none does."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication

from app.widgets.notice_bar import NoticeBar, Step
from core.errors import RankdeckError

COPY_PATH: Final = "Copy &path"
COPY_ADDRESS: Final = "Copy &address"


def open_path(path: Path, notice: NoticeBar) -> None:
    """Open a file or folder; where that fails, `notice` says why and offers to copy the path."""
    what = "file" if path.is_file() else "folder"
    if not path.exists():
        cause, next_step = f"{path} is not there.", "It was moved or removed. Look for it in the folder above."
    elif QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
        return
    else:
        cause = f"No program of this desktop opened {path}."
        next_step = "Copy the path and open it in your file manager."
    error = RankdeckError(cause, next_step, title=f"The {what} could not be opened")
    notice.show_error(error, Step(COPY_PATH, lambda: QGuiApplication.clipboard().setText(str(path))))


def open_link(link: QUrl, notice: NoticeBar) -> None:
    """Open a web page in the browser; where none opens it, `notice` offers to copy its address."""
    if QDesktopServices.openUrl(link):
        return
    address = link.toString()
    error = RankdeckError(
        f"No browser opened {address}.",
        "Copy the address and open it in your browser.",
        title="The page could not be opened",
    )
    notice.show_error(error, Step(COPY_ADDRESS, lambda: QGuiApplication.clipboard().setText(address)))
