"""About Rankdeck: version, licences, links."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QPushButton, QWidget

from app.state.about_text import about_html, about_text
from app.views.style.icons import app_icon
from app.views.widgets.build import bold_label, dialog_buttons, lay_column, lay_row, muted_label
from core import __version__

ICON_PX: Final = 48
TEXT_WIDTH: Final = 420


class AboutDialog(QDialog):
    """Versions can be copied for a report.

    Signals:
        docs_requested: The documentation is to be shown.
    """

    docs_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("About Rankdeck")
        sign = QLabel()
        sign.setPixmap(app_icon().pixmap(ICON_PX, ICON_PX))
        title = bold_label("Rankdeck")
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 1.6)
        title.setFont(font)
        self.text = QLabel(about_html(), wordWrap=True, openExternalLinks=True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.text.setMinimumWidth(TEXT_WIDTH)
        self.text.setAccessibleName("Version and licences")
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        self.copy = QPushButton("&Copy versions")
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(about_text()))
        self.docs = QPushButton("&Documentation")
        self.docs.clicked.connect(self.docs_requested)
        for button in (self.copy, self.docs):
            buttons.addButton(button, QDialogButtonBox.ButtonRole.ActionRole)
        for any_button in buttons.findChildren(QPushButton):
            any_button.setAutoDefault(False)  # nothing here is to be confirmed
        names = lay_column(None, title, muted_label(f"Version {__version__}", wraps=False), spacing=2)
        head = lay_row(None, sign, names, None, spacing=12)
        lay_column(self, head, self.text, None, buttons, spacing=12, margins=(16, 16, 16, 12))
