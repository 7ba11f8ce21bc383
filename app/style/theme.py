"""Style and colours of the application: the system's style where it fits, ours elsewhere; light and dark."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from app.style.control_style import ControlStyle
from app.style.tones import accent_text, blend, tone

# Styles of the system that stay; they bring colours of their own.
NATIVE_STYLES: Final = ("windows11", "macos")
_ROLES: Final = QPalette.ColorRole
# Light and dark.
_COLOURS: Final[dict[QPalette.ColorRole, tuple[str, str]]] = {
    _ROLES.Window: ("#f3f3f3", "#202020"),
    _ROLES.WindowText: ("#1b1b1b", "#f3f3f3"),
    _ROLES.Base: ("#ffffff", "#2b2b2b"),
    _ROLES.AlternateBase: ("#f9f9f9", "#303030"),
    _ROLES.ToolTipBase: ("#ffffff", "#2b2b2b"),
    _ROLES.ToolTipText: ("#1b1b1b", "#f3f3f3"),
    _ROLES.Text: ("#1b1b1b", "#f3f3f3"),
    _ROLES.Button: ("#fbfbfb", "#383838"),
    _ROLES.ButtonText: ("#1b1b1b", "#f3f3f3"),
    _ROLES.BrightText: ("#ffffff", "#ffffff"),
    _ROLES.Light: ("#ffffff", "#484848"),
    _ROLES.Midlight: ("#f0f0f0", "#3d3d3d"),
    _ROLES.Mid: ("#c8c8c8", "#1a1a1a"),
    _ROLES.Dark: ("#a0a0a0", "#141414"),
    _ROLES.Shadow: ("#6a6a6a", "#000000"),
    _ROLES.PlaceholderText: ("#666666", "#9d9d9d"),
    _ROLES.Link: ("#005fb8", "#60cdff"),
    _ROLES.LinkVisited: ("#005fb8", "#60cdff"),
}
_DISABLED: Final = ("#8d8d8d", "#7d7d7d")
# Opacity of the text's colour in the ground of a chosen row: quiet, with the accent's bar at its left.
_SELECTED: Final = 0.06

# Themes to choose from, and what people call them.
THEMES: Final = {"system": "&System", "light": "&Light", "dark": "&Dark"}
_SCHEMES: Final = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}


class Theme(QObject):
    """The application's style and palette, of the system's scheme or of the chosen one.

    Qt's styles for Windows 11 and macOS bring their own colours; elsewhere `ControlStyle` is used with ours.
    """

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._application = application
        self._chosen = "system"
        self._native = application.style().name() in NATIVE_STYLES
        if not self._native:
            if not isinstance(application.style(), ControlStyle):
                application.setStyle(ControlStyle())
            application.styleHints().colorSchemeChanged.connect(self._on_scheme_changed)
            self.set_dark(application.styleHints().colorScheme() == Qt.ColorScheme.Dark)

    def choose(self, name: str) -> None:
        """Show one of `THEMES`; any other name means the system's."""
        self._chosen = name if name in _SCHEMES else "system"
        hints = self._application.styleHints()
        hints.setColorScheme(_SCHEMES.get(name, Qt.ColorScheme.Unknown))  # also of title bars
        if not self._native:
            self.set_dark(_SCHEMES.get(name, hints.colorScheme()) == Qt.ColorScheme.Dark)

    def set_dark(self, dark: bool) -> None:
        palette = themed_palette(dark)
        self._application.setPalette(palette)  # takes the palettes of single classes away
        self._application.setPalette(
            _quietly_selected(palette),
            "QAbstractItemView",  # type: ignore[arg-type]  # the stub says bytes: refused
        )

    def _on_scheme_changed(self, scheme: Qt.ColorScheme) -> None:
        if self._chosen not in _SCHEMES:
            self.set_dark(scheme == Qt.ColorScheme.Dark)


def themed_palette(dark: bool) -> QPalette:
    palette = QPalette()
    for role, colours in _COLOURS.items():
        palette.setColor(role, QColor(colours[dark]))
    for role in (_ROLES.WindowText, _ROLES.Text, _ROLES.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(_DISABLED[dark]))
    for role in (_ROLES.Highlight, _ROLES.Accent):
        palette.setColor(role, tone(palette, "accent"))
    palette.setColor(_ROLES.HighlightedText, accent_text(palette))
    return palette


def _quietly_selected(palette: QPalette) -> QPalette:
    """A palette for lists and tables: the accent is kept for buttons."""
    rows = QPalette(palette)
    ground, text = palette.color(_ROLES.Base), palette.color(_ROLES.Text)
    for group in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive):
        rows.setColor(group, _ROLES.Highlight, blend(text, ground, _SELECTED))
        rows.setColor(group, _ROLES.HighlightedText, text)
    return rows
