"""Parts of the controls, painted as Qt's style options describe them."""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPalette, QPen
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QComboBox,
    QPlainTextEdit,
    QPushButton,
    QStyle,
    QStyleOption,
    QStyleOptionButton,
    QStyleOptionHeader,
    QStyleOptionMenuItem,
    QStyleOptionProgressBar,
    QStyleOptionTab,
    QStyleOptionViewItem,
    QTextEdit,
    QToolButton,
    QWidget,
)

from app.style.control_drawing import (
    RADIUS,
    Level,
    chevron,
    focus_frame,
    is_framed,
    stroke,
    text_colour,
    thin,
    track,
    veil,
)
from app.style.tones import accent_text, blend, card_edge, is_dark, muted, tone

_S = QStyle.StateFlag
_BOX: Final = 17.0
_TICK: Final = ((0.24, 0.52), (0.43, 0.70), (0.77, 0.33))

# Of a bar whose progress is not known, the part that moves.
_MOVING_SHARE: Final = 0.3
# It takes so long from one end to the other.
_PASS_S: Final = 1.8


def level_at(option: QStyleOption) -> Level:
    if not option.state & _S.State_Enabled:
        return Level.OFF
    if option.state & _S.State_Sunken:
        return Level.PRESSED
    return Level.HOVER if option.state & _S.State_MouseOver else Level.REST


def is_enabled(option: QStyleOption) -> bool:
    return bool(option.state & _S.State_Enabled)


def has_keyboard(option: QStyleOption) -> bool:
    """Whether the control has the focus by a key."""
    return bool(option.state & _S.State_HasFocus) and bool(option.state & _S.State_KeyboardFocusChange)


def is_primary(option: QStyleOption) -> bool:
    """Whether the control is the default button of a dialog."""
    default = QStyleOptionButton.ButtonFeature.DefaultButton
    return isinstance(option, QStyleOptionButton) and bool(option.features & default)


def paint_nothing(_painter: QPainter, _option: QStyleOption, _widget: QWidget | None) -> None:
    pass  # where Windows 11 draws nothing


def paint_button_ground(painter: QPainter, option: QStyleOption, level: Level) -> None:
    """A button's ground, with a hairline that is darker at the bottom; the accent for the default one."""
    area, palette = _inner(option.rect), option.palette
    if is_primary(option) and level is not Level.OFF:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_accent(palette, level))
        painter.drawRoundedRect(area.adjusted(-0.5, -0.5, 0.5, 0.5), RADIUS, RADIUS)
        return
    white, black = level.value
    if is_dark(palette):
        painter.setBrush(veil(palette, white))
    else:
        painter.setBrush(blend(QColor(Qt.GlobalColor.black), palette.color(QPalette.ColorRole.Base), black))
    painter.setPen(QPen(veil(palette, 0.10), 1))
    painter.drawRoundedRect(area, RADIUS, RADIUS)
    if not is_dark(palette) and level is not Level.OFF:
        _bottom_line(painter, area, veil(palette, 0.16))


def _paint_flat_button(painter: QPainter, option: QStyleOption) -> None:
    """The ground of a button without a frame while the mouse is over it, or while it is switched on."""
    on, pressed = bool(option.state & _S.State_On), bool(option.state & _S.State_Sunken)
    if on or pressed or (option.state & _S.State_MouseOver and is_enabled(option)):
        painter.setPen(QPen(veil(option.palette, 0.10), 1) if on else Qt.PenStyle.NoPen)
        painter.setBrush(veil(option.palette, 0.05 if pressed else 0.09 if on else 0.07))
        painter.drawRoundedRect(_inner(option.rect), RADIUS, RADIUS)


def paint_push_button(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    features = option.features if isinstance(option, QStyleOptionButton) else QStyleOptionButton.ButtonFeature.None_
    if features & QStyleOptionButton.ButtonFeature.Flat:
        _paint_flat_button(painter, option)
    else:
        paint_button_ground(painter, option, level_at(option))
        if option.state & _S.State_On and is_enabled(option):
            _paint_switched_on(painter, option)
    if has_keyboard(option):
        focus_frame(painter, option.rect, option.palette)


def _paint_switched_on(painter: QPainter, option: QStyleOption) -> None:
    """A breath of the accent, and a line of it at the bottom: the chosen one of several buttons."""
    accent, area = tone(option.palette, "accent"), _inner(option.rect)
    ground = QColor(accent)
    ground.setAlphaF(0.18)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ground)
    painter.drawRoundedRect(area, RADIUS, RADIUS)
    _bottom_line(painter, area, accent, 2.0)


def paint_tool_button(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    if option.state & (_S.State_AutoRaise | _S.State_On):
        _paint_flat_button(painter, option)
    else:
        paint_button_ground(painter, option, level_at(option))


def paint_check_box(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    """A check box with an outline of at least 3 to 1 against the window and a card."""
    area, level, on = _centred(option.rect), level_at(option), bool(option.state & _S.State_On)
    _mark_ground(painter, area, option.palette, level, on=on, radius=RADIUS)
    if on:
        painter.setPen(stroke(_mark_colour(option.palette, level), area.width() / 10))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline([area.topLeft() + QPointF(x, y) * area.width() for x, y in _TICK])


def paint_radio_button(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    area, level, on = _centred(option.rect), level_at(option), bool(option.state & _S.State_On)
    _mark_ground(painter, area, option.palette, level, on=on, radius=area.width() / 2)
    if on:
        dot = 4.5 if level is Level.HOVER else 4.0
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_mark_colour(option.palette, level))
        painter.drawEllipse(area.center(), dot, dot)


def paint_field(painter: QPainter, option: QStyleOption) -> None:
    """A field: its bottom line makes it visible, and has the accent while it has the focus."""
    area, palette, enabled = _inner(option.rect), option.palette, is_enabled(option)
    focus, dark = bool(option.state & _S.State_HasFocus), is_dark(option.palette)
    fill = veil(palette, Level.REST.value[0] if enabled else Level.OFF.value[0])
    if not dark:
        fill = QColor(Qt.GlobalColor.white)
        fill.setAlphaF(1.0 if focus else 0.75 if enabled else 0.35)
    painter.setPen(QPen(veil(palette, 0.09), 1))
    painter.setBrush(fill)
    painter.drawRoundedRect(area, RADIUS, RADIUS)
    if focus:
        _bottom_line(painter, area, tone(palette, "accent"), 2.0)
    elif enabled:
        _bottom_line(painter, area, veil(palette, 0.54))


def paint_line_edit(painter: QPainter, option: QStyleOption, widget: QWidget | None) -> None:
    if is_framed(option):
        paint_field(painter, option)
    elif widget is None or not isinstance(widget.parentWidget(), QComboBox):
        painter.fillRect(option.rect, option.palette.brush(QPalette.ColorRole.Base))


def paint_frame(painter: QPainter, option: QStyleOption, widget: QWidget | None) -> None:
    if isinstance(widget, QPlainTextEdit | QTextEdit) and option.state & _S.State_HasFocus:
        if not widget.isReadOnly():
            paint_field(painter, option)
            return
        if has_keyboard(option):
            focus_frame(painter, option.rect, option.palette)
            return
    painter.setPen(card_edge(option.palette))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)


def paint_popup(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    """Menus and tooltips: windows of their own, so their corners are the system's."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(card_edge(option.palette))
    painter.setBrush(option.palette.brush(QPalette.ColorRole.ToolTipBase))
    painter.drawRect(option.rect.adjusted(0, 0, -1, -1))


def paint_focus(painter: QPainter, option: QStyleOption, widget: QWidget | None) -> None:
    if option.state & _S.State_KeyboardFocusChange and not isinstance(widget, QPushButton):
        focus_frame(painter, option.rect, option.palette)


def paint_arrow_down(painter: QPainter, option: QStyleOption, widget: QWidget | None) -> None:
    if not isinstance(widget, QToolButton):  # whose sign says that there is more
        chevron(painter, option.rect, text_colour(option.palette))


def paint_tab(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    """The chosen tab has a line of the accent under it."""
    area = QRectF(option.rect)
    if option.state & _S.State_Selected:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tone(option.palette, "accent") if is_enabled(option) else veil(option.palette, 0.3))
        painter.drawRoundedRect(QRectF(area.left() + 10, area.bottom() - 3, area.width() - 20, 3), 1.5, 1.5)
    elif option.state & _S.State_MouseOver and is_enabled(option):
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(veil(option.palette, 0.05))
        painter.drawRoundedRect(area.adjusted(2, 4, -2, -4), RADIUS, RADIUS)


def paint_header(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    painter.fillRect(option.rect, option.palette.brush(QPalette.ColorRole.Base))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(card_edge(option.palette))
    rect = option.rect
    painter.drawLine(rect.bottomLeft(), rect.bottomRight())
    if isinstance(option, QStyleOptionHeader) and option.orientation is Qt.Orientation.Horizontal:
        painter.drawLine(rect.topRight() + QPoint(0, 6), rect.bottomRight() - QPoint(0, 6))


def paint_ground_of_contents(painter: QPainter, option: QStyleOption, bar: QWidget | None) -> None:
    """Paint a scroll bar on the ground of its contents."""
    holder = None if bar is None else bar.parentWidget()
    area = None if holder is None else holder.parentWidget()
    if isinstance(area, QAbstractScrollArea) and area.viewport().autoFillBackground():
        viewport = area.viewport()
        painter.fillRect(option.rect, viewport.palette().brush(viewport.backgroundRole()))


def paint_chosen_bar(painter: QPainter, option: QStyleOption) -> None:
    """The accent's bar of three pixels at the left of a chosen row."""
    if not isinstance(option, QStyleOptionViewItem) or not option.state & _S.State_Selected:
        return
    position, places = option.viewItemPosition, QStyleOptionViewItem.ViewItemPosition
    if position in (places.Middle, places.End):
        return
    height = option.rect.height() / 2
    top = QRectF(option.rect).center().y() - height / 2
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(tone(option.palette, "accent"))
    painter.drawRoundedRect(QRectF(option.rect.left(), top, 3, height), 1.5, 1.5)
    painter.restore()


def paint_progress(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    assert isinstance(option, QStyleOptionProgressBar)
    area = QRectF(thin(option.rect))
    share = (option.progress - option.minimum) / (option.maximum - option.minimum)
    done = QRectF(area.left(), area.top(), area.width() * min(1.0, max(0.0, share)), area.height())
    track(painter, area, option.palette, done, enabled=is_enabled(option))


def paint_waiting(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    """An indeterminate bar: a part that moves; a full bar with stripes, as Fusion's, looks done."""
    area = QRectF(thin(option.rect))
    width = area.width() * _MOVING_SHARE
    passed = time.monotonic() / _PASS_S % 1.0
    part = QRectF(area.left() - width + passed * (area.width() + width), area.top(), width, area.height())
    track(painter, area, option.palette, part.intersected(area), enabled=is_enabled(option))


def without_slab(painter: QPainter, option: QStyleOptionMenuItem) -> QStyleOptionMenuItem:
    """Draw a quiet ground under the menu entry under the mouse, and return an option for the rest."""
    if not option.state & _S.State_Selected:
        return option
    plain = QStyleOptionMenuItem(option)
    plain.state = option.state & ~_S.State_Selected
    if is_enabled(option):
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(veil(option.palette, 0.07))
        painter.drawRoundedRect(QRectF(option.rect), RADIUS, RADIUS)
        painter.restore()
    return plain


def with_text_colour(option: QStyleOption) -> QStyleOption:
    """Mute tabs that are not chosen; colour a primary button's text for the accent."""
    roles = QPalette.ColorRole
    palette = QPalette(option.palette)
    if isinstance(option, QStyleOptionTab):
        if is_enabled(option) and not option.state & _S.State_Selected:
            palette.setColor(roles.WindowText, muted(palette))
    elif is_enabled(option) and is_primary(option):
        palette.setColor(roles.ButtonText, accent_text(palette))
    option.palette = palette
    return option


def _inner(rect: QRect) -> QRectF:
    """A rectangle for a pen of one pixel that stays within it."""
    return QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5)


def _centred(rect: QRect) -> QRectF:
    area = QRectF(0, 0, _BOX, _BOX)
    area.moveCenter(QRectF(rect).center())
    return area


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
