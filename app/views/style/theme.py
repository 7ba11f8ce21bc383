"""Style and colours of the application: native under Windows, Fusion elsewhere, light and dark as the system is."""

from __future__ import annotations

import sys
from typing import Final

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

from app.views.style.tones import blend, is_dark, tone

_DARK: Final = {
    QPalette.ColorRole.Window: "#282b30",
    QPalette.ColorRole.WindowText: "#e4e6e8",
    QPalette.ColorRole.Base: "#1c1e22",
    QPalette.ColorRole.AlternateBase: "#212428",
    QPalette.ColorRole.ToolTipBase: "#2c3036",
    QPalette.ColorRole.ToolTipText: "#e4e6e8",
    QPalette.ColorRole.Text: "#e4e6e8",
    QPalette.ColorRole.Button: "#363a41",
    QPalette.ColorRole.ButtonText: "#e4e6e8",
    QPalette.ColorRole.BrightText: "#ffffff",
    QPalette.ColorRole.Light: "#454a52",
    QPalette.ColorRole.Midlight: "#3d4249",
    QPalette.ColorRole.Mid: "#16181b",
    QPalette.ColorRole.Dark: "#111315",
    QPalette.ColorRole.Shadow: "#000000",
    QPalette.ColorRole.PlaceholderText: "#9aa0a6",
    QPalette.ColorRole.Link: "#5cb8ee",
}
_DISABLED: Final = "#767b81"
_OUTLINE_GROUND: Final = ("#a8a8a8", "#b6bdc7")
"""What Fusion outlines a box from, light and dark: 0.79 of it is the line, which then has 3 to 1 against the window."""
_SELECTED: Final = 0.16
"""Share of the accent in the ground of a chosen row: quiet, and its text stays text."""

THEMES: Final = {"system": "&System", "light": "&Light", "dark": "&Dark"}
"""Themes to choose from, and what people call them."""
_SCHEMES: Final = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}


class Theme(QObject):
    """Keeps the application's palette with the system's scheme while it runs.

    Windows' own style brings its colours, accent included. Elsewhere Fusion is used; where the platform says "dark"
    without bringing a dark palette, ours is laid over it.
    """

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._application = application
        self._chosen = "system"
        self._native = sys.platform in ("win32", "darwin")
        if not self._native:
            application.setStyle("Fusion")
            application.styleHints().colorSchemeChanged.connect(self._on_scheme_changed)
            self.set_dark(application.styleHints().colorScheme() == Qt.ColorScheme.Dark)

    def choose(self, name: str) -> None:
        """One of `THEMES`; any other name means that of the system."""
        self._chosen = name
        hints = self._application.styleHints()
        if self._native:
            hints.setColorScheme(_SCHEMES.get(name, Qt.ColorScheme.Unknown))
        else:
            self.set_dark(_SCHEMES.get(name, hints.colorScheme()) == Qt.ColorScheme.Dark)

    def set_dark(self, dark: bool) -> None:
        """Shows everything dark or light; widgets that are open follow."""
        style = QStyleFactory.create("Fusion")
        palette = style.standardPalette()
        if is_dark(palette) != dark:
            palette = _dark_palette() if dark else _light_palette()
        elif not dark:
            palette.setColor(QPalette.ColorRole.PlaceholderText, QColor("#6a6a6a"))
        for group in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive):
            palette.setColor(group, QPalette.ColorRole.Highlight, tone(palette, "accent"))
            palette.setColor(group, QPalette.ColorRole.HighlightedText, QColor("#101214" if dark else "#ffffff"))
            palette.setColor(group, QPalette.ColorRole.Accent, tone(palette, "accent"))
        self._application.setPalette(palette)  # takes the palettes of single classes away
        self._set_class_palette(_outlined(palette, dark), "QCheckBox", "QRadioButton")
        self._set_class_palette(_quietly_selected(palette), "QAbstractItemView")

    def _set_class_palette(self, palette: QPalette, *classes: str) -> None:
        for name in classes:
            self._application.setPalette(palette, name)  # type: ignore[arg-type]  # the stub says bytes: refused

    def _on_scheme_changed(self, scheme: Qt.ColorScheme) -> None:
        if self._chosen not in _SCHEMES:
            self.set_dark(scheme == Qt.ColorScheme.Dark)


def _outlined(palette: QPalette, dark: bool) -> QPalette:
    """For boxes: Fusion takes their outline from the window's colour, and on a dark one it could not be seen."""
    boxes = QPalette(palette)
    for group in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive):
        boxes.setColor(group, QPalette.ColorRole.Window, QColor(_OUTLINE_GROUND[dark]))
        boxes.setColor(group, QPalette.ColorRole.Text, QColor("#ffffff" if dark else "#000000"))
    return boxes


def _quietly_selected(palette: QPalette) -> QPalette:
    """For lists and tables: the accent is kept for what is to be pressed."""
    rows = QPalette(palette)
    ground, text = palette.color(QPalette.ColorRole.Base), palette.color(QPalette.ColorRole.Text)
    for group in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive):
        rows.setColor(group, QPalette.ColorRole.Highlight, blend(tone(palette, "accent"), ground, _SELECTED))
        rows.setColor(group, QPalette.ColorRole.HighlightedText, text)
    return rows


def _dark_palette() -> QPalette:
    palette = QPalette()
    for role, colour in _DARK.items():
        palette.setColor(role, QColor(colour))
    for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(_DISABLED))
    return palette


def _light_palette() -> QPalette:
    palette = QPalette(QColor("#f0f0f0"), QColor("#f0f0f0"))
    palette.setColor(QPalette.ColorRole.Base, QColor("#ffffff"))
    palette.setColor(QPalette.ColorRole.PlaceholderText, QColor("#6a6a6a"))
    return palette
