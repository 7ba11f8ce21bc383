"""About Rankdeck: version, licences, links."""

from __future__ import annotations

import platform
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.style.icons import app_icon
from core import __version__
from core.machine.packages import installed_version
from core.training_python import own_python

ICON_PX: Final = 48
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


class AboutDialog(QMessageBox):
    """Versions, which can be selected and copied for a report."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("About Rankdeck")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setIconPixmap(app_icon().pixmap(ICON_PX, ICON_PX))
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setText(about_html())
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.setStandardButtons(QMessageBox.StandardButton.Close)


def about_html() -> str:
    parts = [("Python", platform.python_version(), ""), ("System", platform.platform(), "")]
    found = ((name, _version(package), licence, page) for name, package, licence, page in PARTS)
    parts += [(f'<a href="{page}">{name}</a>', version, licence) for name, version, licence, page in found if version]
    cells = (f"<tr><td>{row[0]}{GAP}</td><td>{row[1]}{GAP}</td><td>{row[2]}</td></tr>" for row in parts)
    return (
        f"<h3>Rankdeck {__version__}</h3>"
        "<p>Rankdeck trains PyTorch models on the GPUs or CPU cores of this machine, or of several. "
        f'It is free software under the <a href="{LICENCE}">Apache&nbsp;License&nbsp;2.0</a>.</p>'
        f'<table cellpadding="2" style="margin-top: 8px">{"".join(cells)}</table>'
    )


def _version(package: str) -> str | None:
    """A package's version in the window's Python, else in the one that trains."""
    return installed_version(package, own_python()) or installed_version(package)
