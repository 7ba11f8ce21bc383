"""Fonts for running numbers."""

from __future__ import annotations

from PySide6.QtGui import QFont


def tabular(font: QFont) -> QFont:
    """A font with digits of one width, so that a running number keeps its width."""
    fixed = QFont(font)
    fixed.setFeature(QFont.Tag("tnum"), 1)
    return fixed
