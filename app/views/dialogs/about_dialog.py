"""About Rankdeck: version, licences, links."""

from __future__ import annotations

import platform
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QPushButton, QWidget

from app.views.style.icons import app_icon
from app.views.widgets.build import bold_label, dialog_buttons, lay_column, lay_row, muted_label
from core import __version__
from core.machine.packages import installed_version
from core.training_python import own_python

ICON_PX: Final = 48
TEXT_WIDTH: Final = 420
GAP: Final = "&nbsp;" * 3
LICENCE: Final = "https://www.apache.org/licenses/LICENSE-2.0"
# What Rankdeck is built on: name, package, licence, home page.
PARTS: Final = (
    ("PyTorch", "torch", "BSD-3-Clause", "https://pytorch.org"),
    ("Qt for Python", "PySide6-Essentials", "LGPL-3.0", "https://doc.qt.io/qtforpython-6"),
    ("pyqtgraph", "pyqtgraph", "MIT", "https://www.pyqtgraph.org"),
    ("NumPy", "numpy", "BSD-3-Clause", "https://numpy.org"),
    ("DeepSpeed", "deepspeed", "Apache-2.0", "https://www.deepspeed.ai"),
)


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


def about_html() -> str:
    """What is installed, with links."""
    parts = [("Python", platform.python_version(), "")]
    parts += [(f'<a href="{page}">{name}</a>', version, licence) for name, version, licence, page in _installed()]
    cells = (f"<tr><td>{row[0]}{GAP}</td><td>{row[1]}{GAP}</td><td>{row[2]}</td></tr>" for row in parts)
    return (
        "<p>Rankdeck trains PyTorch models on the GPUs or CPU cores of this machine, or of several. "
        f'It is free software under the <a href="{LICENCE}">Apache&nbsp;License&nbsp;2.0</a>.</p>'
        f'<table cellpadding="2" style="margin-top: 8px">{"".join(cells)}</table>'
    )


def about_text() -> str:
    """The versions, one a line: what a report of a problem needs."""
    lines = [f"Rankdeck {__version__}", f"Python {platform.python_version()}", f"System {platform.platform()}"]
    return "\n".join([*lines, *(f"{name} {version}" for name, version, _, _ in _installed())]) + "\n"


def _installed() -> list[tuple[str, str, str, str]]:
    found = [(name, _version(package), licence, page) for name, package, licence, page in PARTS]
    return [(name, version, licence, page) for name, version, licence, page in found if version is not None]


def _version(package: str) -> str | None:
    """Of the window's own packages, else of those that training uses."""
    return installed_version(package, own_python()) or installed_version(package)
