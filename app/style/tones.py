"""Colours derived from the palette, so that they follow light and dark by themselves.

A tone is always shown with a word or a sign beside it; no meaning hangs on colour alone.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtGui import QColor, QPalette

_TONES: Final[dict[str, tuple[str, str]]] = {
    # Okabe–Ito hues, darkened for white and lightened for black until text in them has a contrast of at least 4.5.
    "accent": ("#005fb8", "#60cdff"),
    "accent_text": ("#ffffff", "#000000"),
    "info": ("#005fb8", "#60cdff"),
    "success": ("#00734f", "#35c49a"),
    "warning": ("#8a5a00", "#e9ab2f"),
    "error": ("#b3400a", "#f08a5d"),
}


def is_dark(palette: QPalette) -> bool:
    ground = palette.color(QPalette.ColorRole.Window).lightness()
    return ground < palette.color(QPalette.ColorRole.WindowText).lightness()


def tone(palette: QPalette, name: str) -> QColor:
    """The colour of a tone ("muted" for lesser text, or one of `_TONES`) on a palette."""
    if name == "muted":
        return muted(palette)
    light, dark = _TONES[name]
    return QColor(dark if is_dark(palette) else light)


def muted(palette: QPalette) -> QColor:
    """Text that steps back: still at least 4.5 to 1 against the ground."""
    return blend(palette.color(QPalette.ColorRole.WindowText), palette.color(QPalette.ColorRole.Window), 0.68)


def accent_text(palette: QPalette) -> QColor:
    return tone(palette, "accent_text")


def card_edge(palette: QPalette) -> QColor:
    return blend(palette.color(QPalette.ColorRole.WindowText), palette.color(QPalette.ColorRole.Base), 0.1)


def rule(palette: QPalette) -> QColor:
    """A thin line between parts, an empty bar, a frame."""
    return blend(palette.color(QPalette.ColorRole.WindowText), palette.color(QPalette.ColorRole.Window), 0.2)


def tint(palette: QPalette, name: str) -> QColor:
    """The ground of a bar with a tone: a breath of it over the window's colour."""
    return blend(tone(palette, name), palette.color(QPalette.ColorRole.Window), 0.14)


def chosen_ground(palette: QPalette) -> QColor:
    """The ground of the chosen row of a list on the window's ground: a card, no slab of colour."""
    if is_dark(palette):
        return blend(palette.color(QPalette.ColorRole.WindowText), palette.color(QPalette.ColorRole.Window), 0.08)
    return palette.color(QPalette.ColorRole.Base)


def hover_ground(palette: QPalette) -> QColor:
    """The ground of the row under the mouse, half way to the chosen one's."""
    return blend(chosen_ground(palette), palette.color(QPalette.ColorRole.Window), 0.5)


def blend(front: QColor, back: QColor, share: float) -> QColor:
    rest = 1.0 - share
    return QColor(
        round(share * front.red() + rest * back.red()),
        round(share * front.green() + rest * back.green()),
        round(share * front.blue() + rest * back.blue()),
    )
