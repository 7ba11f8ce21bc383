"""Parts of the controls, painted as Qt's style options describe them."""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QAbstractSpinBox,
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

from app.views.style.control_drawing import (
    RADIUS,
    Level,
    button,
    check_box,
    chevron,
    field,
    flat_button,
    focus_frame,
    radio_button,
    text_colour,
    track,
    veil,
)
from app.views.style.control_sizes import MENU_SIGN, is_framed, thin
from app.views.style.tones import accent_text, card_edge, muted, tone

_S = QStyle.StateFlag

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
    """Whether the focus is here and came by a key."""
    return bool(option.state & _S.State_HasFocus) and bool(option.state & _S.State_KeyboardFocusChange)


def is_primary(option: QStyleOption) -> bool:
    """Whether it is the default button of a dialog."""
    default = QStyleOptionButton.ButtonFeature.DefaultButton
    return isinstance(option, QStyleOptionButton) and bool(option.features & default)


def paint_nothing(_painter: QPainter, _option: QStyleOption, _widget: QWidget | None) -> None:
    """Where Windows 11 draws nothing."""


def paint_push_button(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    features = option.features if isinstance(option, QStyleOptionButton) else QStyleOptionButton.ButtonFeature.None_
    on, pressed = bool(option.state & _S.State_On), bool(option.state & _S.State_Sunken)
    if features & QStyleOptionButton.ButtonFeature.Flat:
        if on or pressed or (option.state & _S.State_MouseOver and is_enabled(option)):
            flat_button(painter, option.rect, option.palette, pressed=pressed, on=on)
    else:
        level = Level.PRESSED if on and is_enabled(option) else level_at(option)
        button(painter, option.rect, option.palette, level, primary=is_primary(option))
    if has_keyboard(option):
        focus_frame(painter, option.rect, option.palette)


def paint_tool_button(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    on, pressed = bool(option.state & _S.State_On), bool(option.state & _S.State_Sunken)
    if option.state & _S.State_AutoRaise or on:
        if on or pressed or (option.state & _S.State_MouseOver and is_enabled(option)):
            flat_button(painter, option.rect, option.palette, pressed=pressed, on=on)
        return
    button(painter, option.rect, option.palette, level_at(option))


def paint_check_box(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    on, partly = bool(option.state & _S.State_On), bool(option.state & _S.State_NoChange)
    check_box(painter, option.rect, option.palette, level_at(option), on=on, partly=partly)


def paint_radio_button(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    radio_button(painter, option.rect, option.palette, level_at(option), on=bool(option.state & _S.State_On))


def paint_line_edit(painter: QPainter, option: QStyleOption, widget: QWidget | None) -> None:
    if is_framed(option):
        paint_field(painter, option)
    elif widget is None or not isinstance(widget.parentWidget(), QComboBox | QAbstractSpinBox):
        painter.fillRect(option.rect, option.palette.brush(QPalette.ColorRole.Base))


def paint_field(painter: QPainter, option: QStyleOption) -> None:
    focus = bool(option.state & _S.State_HasFocus)
    field(painter, option.rect, option.palette, enabled=is_enabled(option), focus=focus)


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


def paint_group(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    painter.setPen(card_edge(option.palette))
    painter.setBrush(option.palette.brush(QPalette.ColorRole.Base))
    painter.drawRoundedRect(QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -0.5), 2 * RADIUS, 2 * RADIUS)


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
    rect = option.rect
    if isinstance(widget, QToolButton) and widget.popupMode() is not QToolButton.ToolButtonPopupMode.MenuButtonPopup:
        if widget.toolButtonStyle() is Qt.ToolButtonStyle.ToolButtonIconOnly and not widget.icon().isNull():
            return  # its sign says that there is more
        rect = QRect(widget.width() - MENU_SIGN - 4, 0, MENU_SIGN, widget.height())
    chevron(painter, rect, text_colour(option.palette))


def paint_arrow_up(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    chevron(painter, option.rect, text_colour(option.palette), up=True)


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
    """A scroll bar stands on the ground of what it scrolls."""
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
    if option.invertedAppearance:
        done.moveRight(area.right())
    track(painter, area, option.palette, done, enabled=is_enabled(option))


def paint_waiting(painter: QPainter, option: QStyleOption, _widget: QWidget | None) -> None:
    """A part that moves along a bar whose progress is not known; a full bar with stripes, as Fusion's, looks done."""
    area = QRectF(thin(option.rect))
    width = area.width() * _MOVING_SHARE
    passed = time.monotonic() / _PASS_S % 1.0
    part = QRectF(area.left() - width + passed * (area.width() + width), area.top(), width, area.height())
    track(painter, area, option.palette, part.intersected(area), enabled=is_enabled(option))


def without_slab(painter: QPainter, option: QStyleOptionMenuItem) -> QStyleOptionMenuItem:
    """Draws a quiet ground under the entry that is pointed at, and lets the rest be drawn as any other entry."""
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
    """Tabs that are not chosen step back; a primary button's text stands out from the accent."""
    roles = QPalette.ColorRole
    palette = QPalette(option.palette)
    if isinstance(option, QStyleOptionTab):
        if is_enabled(option) and not option.state & _S.State_Selected:
            palette.setColor(roles.WindowText, muted(palette))
    elif is_enabled(option) and is_primary(option):
        palette.setColor(roles.ButtonText, accent_text(palette))
    option.palette = palette
    return option
