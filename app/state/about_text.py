"""Versions and licences, as the About dialog shows and copies them."""

from __future__ import annotations

import platform
from typing import Final

from core import __version__
from core.machine.packages import installed_version

LICENCE: Final = "https://www.apache.org/licenses/LICENSE-2.0"
PARTS: Final = (
    ("PyTorch", "torch", "BSD-3-Clause", "https://pytorch.org"),
    ("Qt for Python", "PySide6-Essentials", "LGPL-3.0", "https://doc.qt.io/qtforpython-6"),
    ("pyqtgraph", "pyqtgraph", "MIT", "https://www.pyqtgraph.org"),
    ("NumPy", "numpy", "BSD-3-Clause", "https://numpy.org"),
    ("DeepSpeed", "deepspeed", "Apache-2.0", "https://www.deepspeed.ai"),
)
"""What Rankdeck is built on: name, package, licence, home page."""


def about_html() -> str:
    """What is installed, with links."""
    rows = [f"<tr><td>Python&nbsp;&nbsp;</td><td>{platform.python_version()}</td><td></td></tr>"]
    for name, version, licence, page in _installed():
        rows.append(
            f'<tr><td><a href="{page}">{name}</a>&nbsp;&nbsp;</td><td>{version}&nbsp;&nbsp;</td><td>{licence}</td></tr>'
        )
    return (
        f"<p>Version {__version__}</p>"
        "<p>Rankdeck trains PyTorch models on the GPUs or CPU cores of one machine. It is free software under the "
        f'<a href="{LICENCE}">Apache License 2.0</a>.</p><table>{"".join(rows)}</table>'
    )


def about_text() -> str:
    """The versions, one a line: what a report of a problem needs."""
    lines = [f"Rankdeck {__version__}", f"Python {platform.python_version()}", f"System {platform.platform()}"]
    return "\n".join([*lines, *(f"{name} {version}" for name, version, _, _ in _installed())]) + "\n"


def _installed() -> list[tuple[str, str, str, str]]:
    found = [(name, installed_version(package), licence, page) for name, package, licence, page in PARTS]
    return [(name, version, licence, page) for name, version, licence, page in found if version is not None]
