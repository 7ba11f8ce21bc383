"""Dialog that offers to install missing packages: shows the command before, and its output while it runs."""

from __future__ import annotations

import sys
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextCursor, QTextOption
from PySide6.QtWidgets import QLabel, QProgressBar, QWidget

from app.widgets.build import code_box, muted_label, named
from app.widgets.buttons import PrimaryButton
from app.widgets.dialog import Dialog, Role, set_first_size
from core.errors import RankdeckError
from core.launch.command_line import command_text
from core.machine.packages import Offer

MAX_LINES: Final = 5000
COMMAND_LINES: Final = 3
WIDTH: Final = 640
# With the output of the command.
GOING_HEIGHT: Final = 560


class InstallDialog(Dialog):
    """Shows the missing packages, the command and a button, then the command's output."""

    install_requested = Signal()
    cancel_requested = Signal()

    def __init__(self, cause: str, offer: Offer, parent: QWidget | None = None) -> None:
        super().__init__("Install packages", parent)
        self.offer = offer
        self._going = False
        self.cause = QLabel(cause, wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self.command = code_box("Command to run", command_text(offer.argv))
        self.command.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.command.setFixedHeight(self.command.fontMetrics().lineSpacing() * COMMAND_LINES + 12)
        prefix = sys.prefix.replace("&", "&&")  # no mnemonic
        label = QLabel(f"This &command installs what is missing into Rankdeck's Python, in {prefix}:", wordWrap=True)
        label.setBuddy(self.command)
        self.hint = muted_label(
            "Nothing happens until you press Install. The installation needs the network and can take some minutes."
        )
        self.output = code_box("Output of the command")
        self.output.setMaximumBlockCount(MAX_LINES)
        self.output.hide()
        self.bar = named(QProgressBar(minimum=0, maximum=0, textVisible=False), "Installing")
        self.bar.hide()
        self.install = PrimaryButton("&Install")
        self.buttons.addButton(self.install, Role.AcceptRole)
        self.cancel = self.add_button("C&ancel", Role.ActionRole)  # it does not always close the dialog
        self.install.clicked.connect(self._on_install_clicked)
        self.cancel.clicked.connect(self._on_cancel_clicked)
        parts = (self.notice, self.cause, label, self.command, self.hint, self.output, self.bar)
        column = self.lay_out(*parts, grow=self.output, size=(WIDTH, 0))
        self.install.setDefault(True)
        self.resize(WIDTH, column.totalHeightForWidth(WIDTH))  # a size hint knows nothing of wrapped lines

    def append(self, text: str) -> None:
        cursor = QTextCursor(self.output.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        bar = self.output.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - 1
        cursor.insertText(text)
        if follows:
            bar.setValue(bar.maximum())

    def show_installed(self) -> None:
        self._show_going(False)
        self.install.hide()
        self.notice.say("success", "Installed", "Packages installed. You can start the run now.")
        self.cancel.setText("&Close")
        self.cancel.setFocus()

    def show_error(self, error: RankdeckError) -> None:
        self._show_going(False)
        self.install.setText("&Install again")
        self.cancel.setText("&Close")
        self.install.setFocus()
        self.notice.show_error(error)

    def reject(self) -> None:
        """Close, unless the command runs: Escape must not hide it."""
        if not self._going:
            super().reject()

    def _show_going(self, going: bool) -> None:
        self._going = going
        self.bar.setVisible(going)
        self.install.setEnabled(not going)
        self.cancel.setEnabled(True)

    def _on_install_clicked(self) -> None:
        self.notice.clear()
        self.output.clear()
        self.hint.hide()
        if self.output.isHidden():
            self.output.show()
            set_first_size(self, self.width(), max(self.height(), GOING_HEIGHT))
        self.cancel.setText("C&ancel")
        self._show_going(True)
        self.cancel.setFocus()
        self.install_requested.emit()

    def _on_cancel_clicked(self) -> None:
        if self._going:
            self.cancel.setEnabled(False)  # until it has ended
            self.cancel_requested.emit()
        else:
            self.reject()
