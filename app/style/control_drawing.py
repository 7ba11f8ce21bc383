"""Shapes of the controls: fields, buttons, boxes, bars, each painted from a palette.

Fills and lines are the text's colour, or white, with some transparency, so that one control looks right on the window
and on a card, in light and in dark.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPalette, QPen
from PySide6.QtWidgets import QStyleOption, QStyleOptionFrame

from app.style.tones import is_dark, tone

RADIUS: Final = 4.0
# Height of a progress bar.
TRACK: Final = 4


class Level(Enum):
    """States under the mouse: the opacity of white over a dark ground, of black over a light one."""

    REST = (0.060, 0.0)
    HOVER = (0.095, 0.03)
    PRESSED = (0.030, 0.06)
    OFF = (0.040, 0.02)


def veil(palette: QPalette, opacity: float) -> QColor:
    """The text's colour with some opacity, for lines, and grounds under the mouse."""
    colour = QColor(Qt.GlobalColor.white if is_dark(palette) else Qt.GlobalColor.black)
    colour.setAlphaF(opacity)
    return colour


def is_framed(option: QStyleOption) -> bool:
    return isinstance(option, QStyleOptionFrame) and option.lineWidth > 0


def text_colour(palette: QPalette) -> QColor:
    return palette.color(QPalette.ColorRole.ButtonText)


def chevron(painter: QPainter, rect: QRect, colour: QColor) -> None:
    """A small angle: a list opens here."""
    centre, half, rise = QRectF(rect).center(), 4.0, 2.0
    painter.setPen(stroke(colour, 1.3))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPolyline(
        [centre + QPointF(-half, -rise), centre + QPointF(0, rise), centre + QPointF(half, -rise)],
    )


def focus_frame(painter: QPainter, rect: QRect, palette: QPalette) -> None:
    painter.setPen(QPen(palette.color(QPalette.ColorRole.WindowText), 1.5))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(QRectF(rect).adjusted(0.75, 0.75, -0.75, -0.75), RADIUS, RADIUS)


def thin(rect: QRect) -> QRect:
    thin = QRect(rect.left(), 0, rect.width(), TRACK)
    thin.moveCenter(rect.center())
    return thin


def track(painter: QPainter, rect: QRectF, palette: QPalette, filled: QRectF | None, *, enabled: bool = True) -> None:
    """A rounded bar with its filled part."""
    painter.setPen(Qt.PenStyle.NoPen)
    radius = min(rect.width(), rect.height()) / 2
    painter.setBrush(veil(palette, 0.16))
    painter.drawRoundedRect(rect, radius, radius)
    if filled is not None and filled.isValid():
        painter.setBrush(tone(palette, "accent") if enabled else veil(palette, 0.3))
        painter.drawRoundedRect(filled, radius, radius)


def scroll_thumb(painter: QPainter, rect: QRect, palette: QPalette, *, upright: bool, wide: bool) -> None:
    """A scroll bar's handle: a line that grows under the mouse."""
    thickness = 6.0 if wide else 3.0
    area = QRectF(rect)
    centre = area.center()
    if upright:
        area = QRectF(centre.x() - thickness / 2, area.top() + 2, thickness, area.height() - 4)
    else:
        area = QRectF(area.left() + 2, centre.y() - thickness / 2, area.width() - 4, thickness)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(veil(palette, 0.54 if wide else 0.45))
    painter.drawRoundedRect(area, thickness / 2, thickness / 2)


def stroke(colour: QColor, width: float) -> QPen:
    return QPen(colour, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
