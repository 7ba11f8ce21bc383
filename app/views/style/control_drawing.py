"""Shapes of the controls: fields, buttons, boxes, bars, each painted from a palette.

Fills and lines are the text's colour, or white, with some transparency, so that one control looks right on the window
and on a card, in light and in dark.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPalette, QPen

from app.views.style.tones import accent_text, blend, is_dark, tone

RADIUS: Final = 4.0
# Height of a progress bar and of a slider's groove.
TRACK: Final = 4.0
THUMB: Final = 16
_BOX: Final = 17.0
_TICK: Final = ((0.24, 0.52), (0.43, 0.70), (0.77, 0.33))


class Level(Enum):
    """How a control answers the mouse: the opacity of white over a dark ground, of black over a light one."""

    REST = (0.060, 0.0)
    HOVER = (0.095, 0.03)
    PRESSED = (0.030, 0.06)
    OFF = (0.040, 0.02)


def veil(palette: QPalette, opacity: float) -> QColor:
    """The text's colour with some opacity: lines, and grounds under the mouse."""
    colour = QColor(Qt.GlobalColor.white if is_dark(palette) else Qt.GlobalColor.black)
    colour.setAlphaF(opacity)
    return colour


def text_colour(palette: QPalette) -> QColor:
    """The colour of signs: that of text, disabled where the palette is."""
    return palette.color(QPalette.ColorRole.ButtonText)


def button(painter: QPainter, rect: QRect, palette: QPalette, level: Level, *, primary: bool = False) -> None:
    """A push button's ground, with a hairline that is darker at the bottom; the accent for the primary one."""
    area = _inner(rect)
    if primary and level is not Level.OFF:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_accent(palette, level))
        painter.drawRoundedRect(area.adjusted(-0.5, -0.5, 0.5, 0.5), RADIUS, RADIUS)
        return
    _ground(painter, area, palette, level)
    if not is_dark(palette) and level is not Level.OFF:
        _bottom_line(painter, area, veil(palette, 0.16))


def flat_button(painter: QPainter, rect: QRect, palette: QPalette, *, pressed: bool, on: bool) -> None:
    """The ground of a button without a frame while the mouse is over it, or while it is switched on."""
    painter.setPen(QPen(veil(palette, 0.10), 1) if on else Qt.PenStyle.NoPen)
    painter.setBrush(veil(palette, 0.05 if pressed else 0.09 if on else 0.07))
    painter.drawRoundedRect(_inner(rect), RADIUS, RADIUS)


def field(painter: QPainter, rect: QRect, palette: QPalette, *, enabled: bool, focus: bool) -> None:
    """A line to write in: its bottom line is what makes it visible, and is the accent while it has the keyboard."""
    area = _inner(rect)
    dark = is_dark(palette)
    fill = (
        veil(palette, Level.REST.value[0] if enabled else Level.OFF.value[0]) if dark else QColor(Qt.GlobalColor.white)
    )
    if not dark:
        fill.setAlphaF(1.0 if focus else 0.75 if enabled else 0.35)
    painter.setPen(QPen(veil(palette, 0.09), 1))
    painter.setBrush(fill)
    painter.drawRoundedRect(area, RADIUS, RADIUS)
    if focus:
        _bottom_line(painter, area, tone(palette, "accent"), 2.0)
    elif enabled:
        _bottom_line(painter, area, veil(palette, 0.54))


def check_box(painter: QPainter, rect: QRect, palette: QPalette, level: Level, *, on: bool, partly: bool) -> None:
    """A check box with an outline of at least 3 to 1 against the window and a card."""
    area = _centred(rect)
    _mark_ground(painter, area, palette, level, on=on or partly, radius=RADIUS)
    if not on and not partly:
        return
    painter.setPen(_stroke(_mark_colour(palette, level), area.width() / 10))
    if partly:
        middle = area.center().y()
        painter.drawLine(QPointF(area.left() + 4, middle), QPointF(area.right() - 4, middle))
        return
    points = [QPointF(area.left() + x * area.width(), area.top() + y * area.height()) for x, y in _TICK]
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPolyline(points)


def radio_button(painter: QPainter, rect: QRect, palette: QPalette, level: Level, *, on: bool) -> None:
    area = _centred(rect)
    _mark_ground(painter, area, palette, level, on=on, radius=area.width() / 2)
    if on:
        dot = 4.5 if level is Level.HOVER else 4.0
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_mark_colour(palette, level))
        painter.drawEllipse(area.center(), dot, dot)


def chevron(painter: QPainter, rect: QRect, colour: QColor, *, up: bool = False) -> None:
    """A small angle: a list opens here, a number rises or falls."""
    centre, half = QRectF(rect).center(), 4.0
    rise = -2.0 if up else 2.0
    painter.setPen(_stroke(colour, 1.3))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPolyline(
        [centre + QPointF(-half, -rise), centre + QPointF(0, rise), centre + QPointF(half, -rise)],
    )


def focus_frame(painter: QPainter, rect: QRect, palette: QPalette, radius: float = RADIUS) -> None:
    painter.setPen(QPen(palette.color(QPalette.ColorRole.WindowText), 1.5))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(QRectF(rect).adjusted(0.75, 0.75, -0.75, -0.75), radius, radius)


def track(painter: QPainter, rect: QRectF, palette: QPalette, filled: QRectF | None, *, enabled: bool = True) -> None:
    """A rounded bar and how much of it is filled."""
    painter.setPen(Qt.PenStyle.NoPen)
    radius = min(rect.width(), rect.height()) / 2
    painter.setBrush(veil(palette, 0.16))
    painter.drawRoundedRect(rect, radius, radius)
    if filled is not None and filled.isValid():
        painter.setBrush(tone(palette, "accent") if enabled else veil(palette, 0.3))
        painter.drawRoundedRect(filled, radius, radius)


def thumb(painter: QPainter, centre: QPointF, palette: QPalette, level: Level) -> None:
    """What a slider is moved by: a disc with a dot of the accent, larger under the mouse."""
    painter.setPen(QPen(veil(palette, 0.2), 1))
    painter.setBrush(QColor("#454545" if is_dark(palette) else "#ffffff"))
    painter.drawEllipse(centre, THUMB / 2 - 0.5, THUMB / 2 - 0.5)
    dot = {Level.HOVER: 5.5, Level.PRESSED: 4.0}.get(level, 4.5)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(veil(palette, 0.4) if level is Level.OFF else tone(palette, "accent"))
    painter.drawEllipse(centre, dot, dot)


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


def _inner(rect: QRect) -> QRectF:
    """`rect` for a pen of one pixel that is to stay within it."""
    return QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5)


def _centred(rect: QRect) -> QRectF:
    area = QRectF(0, 0, _BOX, _BOX)
    area.moveCenter(QRectF(rect).center())
    return area


def _ground(painter: QPainter, area: QRectF, palette: QPalette, level: Level) -> None:
    white, black = level.value
    if is_dark(palette):
        painter.setBrush(veil(palette, white))
    else:
        painter.setBrush(blend(QColor(Qt.GlobalColor.black), palette.color(QPalette.ColorRole.Base), black))
    painter.setPen(QPen(veil(palette, 0.10), 1))
    painter.drawRoundedRect(area, RADIUS, RADIUS)


def _bottom_line(painter: QPainter, area: QRectF, colour: QColor, width: float = 1.0) -> None:
    painter.setPen(QPen(colour, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    y = area.bottom() - (width - 1.0) / 2
    painter.drawLine(QPointF(area.left() + RADIUS / 2, y), QPointF(area.right() - RADIUS / 2, y))


def _mark_ground(painter: QPainter, area: QRectF, palette: QPalette, level: Level, *, on: bool, radius: float) -> None:
    if on:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(veil(palette, 0.3) if level is Level.OFF else _accent(palette, level))
        area = area.adjusted(-0.5, -0.5, 0.5, 0.5)
    else:
        painter.setPen(QPen(veil(palette, 0.25 if level is Level.OFF else 0.58), 1))
        painter.setBrush(veil(palette, 0.08 if level is Level.PRESSED else 0.05 if level is Level.HOVER else 0.015))
    painter.drawRoundedRect(area, radius, radius)


def _mark_colour(palette: QPalette, level: Level) -> QColor:
    return palette.color(QPalette.ColorRole.Base) if level is Level.OFF else accent_text(palette)


def _accent(palette: QPalette, level: Level) -> QColor:
    share = {Level.HOVER: 0.9, Level.PRESSED: 0.8}.get(level, 1.0)
    return blend(tone(palette, "accent"), palette.color(QPalette.ColorRole.Base), share)


def _stroke(colour: QColor, width: float) -> QPen:
    return QPen(colour, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
