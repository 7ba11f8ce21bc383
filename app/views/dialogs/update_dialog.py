"""Dialog of a newer version: what is new, its size, and one button that downloads and starts its setup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QProgressBar, QPushButton, QWidget

from app.views.widgets.build import bold_label, lay_column, muted_label, named, scrolled
from app.views.widgets.buttons import primary_button
from app.views.widgets.notice_bar import NoticeBar
from core.errors import RankdeckError
from core.formatting import byte_size

WIDTH: Final = 520
EDGE: Final = 16
MOST_NEWS: Final = 260
"""Higher news scroll."""
_STEPS: Final = 1000


class UpdateDialog(QDialog):
    """Asks once; shows how far the download is.

    Args:
        release: "0.2.0".
        news: What is new, a line each.
        size: What is there and what will be downloaded.
        why_not: Why it cannot be installed from here; empty where it can.

    Signals:
        update_requested: Download the setup and start it.
        stop_requested: The download is to stop.
    """

    update_requested = Signal()
    stop_requested = Signal()

    def __init__(
        self, release: str, news: Sequence[str], size: str, why_not: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Update")
        self._is_going = False
        self.notice = NoticeBar()
        self.news = QLabel("\n".join(f"• {line}" for line in news) or "The announcement does not say what is new.")
        self.news.setTextFormat(Qt.TextFormat.PlainText)  # a server's text is not a page
        self.news.setWordWrap(True)
        self.news.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.news.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._size = size
        self.size_line = muted_label(size)
        self.why_not = muted_label(why_not)
        self.why_not.setVisible(bool(why_not))
        self.bar = named(QProgressBar(minimum=0, maximum=_STEPS, textVisible=False), "Progress of the download")
        self.bar.hide()
        self.install = primary_button("&Update and restart")
        self.install.setVisible(not why_not)
        self.install.clicked.connect(self._on_install_clicked)
        self.leave = QPushButton("&Later" if not why_not else "&Close")
        self.leave.setAutoDefault(False)
        self.leave.clicked.connect(self.reject)
        buttons = QDialogButtonBox()
        buttons.addButton(self.install, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(self.leave, QDialogButtonBox.ButtonRole.RejectRole)
        news_area = scrolled(self.news)
        news_area.setMinimumHeight(min(self.news.heightForWidth(WIDTH - 2 * EDGE) + 8, MOST_NEWS))
        lay_column(
            self, self.notice, bold_label(f"Rankdeck {release}"), self.size_line, news_area, self.why_not, self.bar,
            buttons, spacing=8, margins=(EDGE, EDGE, EDGE, 12), grow=news_area,
        )  # fmt: skip
        self.resize(WIDTH, self.sizeHint().height())

    def show_arrived(self, arrived: int, total: int) -> None:
        """How much of the setup is here."""
        self.bar.setValue(round(_STEPS * arrived / total) if total else 0)
        self.size_line.setText(f"Downloading: {byte_size(arrived)} of {byte_size(total)}")

    def show_error(self, error: RankdeckError) -> None:
        """Why it was not downloaded or started."""
        self._end()
        self.notice.show_error(error)

    def show_stopped(self) -> None:
        """The download was stopped."""
        self._end()

    def show_starting(self) -> None:
        """The setup is started, and the window is about to close."""
        self.leave.setEnabled(False)
        self.size_line.setText("Starting the setup. Rankdeck closes now and opens again.")

    def reject(self) -> None:
        """Stops the download; closes the dialog otherwise."""
        if self._is_going:
            self.stop_requested.emit()
        else:
            super().reject()

    def _on_install_clicked(self) -> None:
        self._is_going = True
        self.notice.clear()
        self.install.setEnabled(False)
        self.leave.setText("&Stop")
        self.bar.setValue(0)
        self.bar.show()
        self.update_requested.emit()

    def _end(self) -> None:
        self._is_going = False
        self.bar.hide()
        self.size_line.setText(self._size)
        self.install.setEnabled(True)
        self.leave.setText("&Later")
