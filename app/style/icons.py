"""Icons: one SVG a sign, drawn in the colour that the theme has at the moment it is painted.

Because the colour is taken when painting, a change from light to dark needs no refresh anywhere.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QIconEngine, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer

from app.style.tones import tone

ICON_DIR: Final = Path(__file__).resolve().parents[2] / "resources" / "icons"


@lru_cache(maxsize=128)
def _svg(name: str) -> str:
    return (ICON_DIR / f"{name}.svg").read_text(encoding="utf-8")


@lru_cache(maxsize=512)
def _pixmap(name: str, colour: str, width: int, height: int) -> QPixmap:
    pixmap = QPixmap(width, height)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(_svg(name).replace("currentColor", colour).encode()).render(painter, QRectF(0, 0, width, height))
    painter.end()
    return pixmap


class ThemedIconEngine(QIconEngine):
    """Paints one SVG in the palette's text colour, or in a tone ("accent", "error", …) of it."""

    def __init__(self, name: str, tone_name: str | None = None) -> None:
        super().__init__()
        self._name = name
        self._tone = tone_name

    def clone(self) -> QIconEngine:
        return ThemedIconEngine(self._name, self._tone)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        ratio = painter.device().devicePixelRatioF()
        painter.drawPixmap(rect, self._drawn(rect.size() * ratio, mode, state))

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        return self._drawn(size, mode, state)

    def _drawn(self, size: QSize, mode: QIcon.Mode, _state: QIcon.State) -> QPixmap:
        palette = QGuiApplication.palette()
        group = QPalette.ColorGroup.Disabled if mode is QIcon.Mode.Disabled else QPalette.ColorGroup.Active
        # A chosen row has nearly the ground of the others.
        colour = palette.color(group, QPalette.ColorRole.ButtonText)
        if self._tone is not None and mode is not QIcon.Mode.Disabled:
            colour = tone(palette, self._tone)
        return _pixmap(self._name, colour.name(), max(1, size.width()), max(1, size.height()))


def icon(name: str, tone_name: str | None = None) -> QIcon:
    return QIcon(ThemedIconEngine(name, tone_name))


def paint_icon(painter: QPainter, name: str, at: QPoint, size: int, colour: QColor) -> None:
    """Draw an icon of `size` logical pixels in any colour (item delegates)."""
    ratio = painter.device().devicePixelRatioF()
    pixels = max(1, round(size * ratio))
    painter.drawPixmap(QRect(at.x(), at.y(), size, size), _pixmap(name, colour.name(), pixels, pixels))


def app_icon() -> QIcon:
    return QIcon(str(ICON_DIR / "app.png"))
