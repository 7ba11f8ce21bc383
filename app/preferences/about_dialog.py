"""About Rankdeck: version, licences, links."""

from __future__ import annotations

import platform
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QWidget

from app.style.icons import app_icon
from app.widgets.build import lay_column, lay_row, muted_label, page_title
from app.widgets.dialog import Dialog, Role
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


class AboutDialog(Dialog):
    """Versions can be copied for a report.

    Signals:
        docs_requested: The documentation is to be shown.
    """

    docs_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("About Rankdeck", parent)
        sign = QLabel()
        sign.setPixmap(app_icon().pixmap(ICON_PX, ICON_PX))
        self.text = QLabel(about_html(), wordWrap=True, openExternalLinks=True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.text.setMinimumWidth(TEXT_WIDTH)
        self.text.setAccessibleName("Version and licences")
        self.copy = self.add_button("&Copy versions", Role.ActionRole)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(about_text()))
        self.docs = self.add_button("&Documentation", Role.ActionRole)
        self.docs.clicked.connect(self.docs_requested)
        self.add_standard(QDialogButtonBox.StandardButton.Close)
        self.confirm_nothing()
        version = muted_label(f"Version {__version__}", wraps=False)
        names = lay_column(None, page_title("Rankdeck"), version, spacing=2)
        self.lay_out(lay_row(None, sign, names, None, spacing=12), self.text, grow=self.text)


def about_html() -> str:
    """Installed packages, with links."""
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
