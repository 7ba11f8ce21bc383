"""Sizes of the controls and of their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import (
    QListWidget,
    QStyle,
    QStyleOption,
    QStyleOptionFrame,
    QStyleOptionMenuItem,
    QStyleOptionSlider,
    QStyleOptionToolButton,
    QToolButton,
    QWidget,
)

from app.style.control_drawing import TRACK

Room: TypeAlias = tuple[int, int] | None
# Of buttons, lists and lines to write in: they stand beside each other.
HEIGHT: Final = 32
# Of menu entries, headers of tables, tool buttons with text.
ROW: Final = 28
# From the edge of a list's line to its text, beyond what Fusion leaves.
INDENT: Final = 6
# From the edge of a line to write in to its text.
FIELD_FRAME: Final = 6
# Room for the chevron of a button that opens a menu.
MENU_SIGN: Final = 14
SCROLL_BAR: Final = 12
_M: Final = QStyle.PixelMetric
# Measures that are not Fusion's.
METRICS: Final = {
    _M.PM_IndicatorWidth: 18,
    _M.PM_IndicatorHeight: 18,
    _M.PM_ExclusiveIndicatorWidth: 18,
    _M.PM_ExclusiveIndicatorHeight: 18,
    _M.PM_CheckBoxLabelSpacing: 8,
    _M.PM_RadioButtonLabelSpacing: 8,
    _M.PM_ScrollBarExtent: SCROLL_BAR,
    _M.PM_TabBarTabHSpace: 20,
    _M.PM_TabBarTabVSpace: 16,
    _M.PM_TabBarBaseOverlap: 0,
    _M.PM_MenuHMargin: 4,
    _M.PM_MenuVMargin: 4,
    _M.PM_HeaderMargin: 6,  # a column's title stands over the text of its cells
    _M.PM_FocusFrameHMargin: 5,  # the text of a row stands clear of the bar that says it is chosen
}


def is_framed(option: QStyleOption) -> bool:
    return isinstance(option, QStyleOptionFrame) and option.lineWidth > 0


def more_room(kind: QStyle.ContentsType, option: QStyleOption, widget: QWidget | None) -> tuple[int, int] | None:
    """A control's extra width over Fusion's and its least height; None: as large as Fusion's."""
    room = _ROOM.get(kind)
    return room(option, widget) if callable(room) else room


def _line_room(option: QStyleOption, _widget: QWidget | None) -> Room:
    return (0, HEIGHT) if is_framed(option) else None


def _entry_room(option: QStyleOption, _widget: QWidget | None) -> Room:
    is_rule = (
        isinstance(option, QStyleOptionMenuItem) and option.menuItemType is QStyleOptionMenuItem.MenuItemType.Separator
    )
    return None if is_rule else (8, ROW)


def _tool_room(option: QStyleOption, widget: QWidget | None) -> Room:
    return (8 + (MENU_SIGN if opens_menu(option, widget) else 0), ROW) if _has_text(option) else None


def _row_room(_option: QStyleOption, widget: QWidget | None) -> Room:
    return (0, ROW) if _is_list_of_choices(widget) else None


_T: Final = QStyle.ContentsType
_ROOM: Final[dict[QStyle.ContentsType, Room | Callable[[QStyleOption, QWidget | None], Room]]] = {
    _T.CT_PushButton: (0, HEIGHT),
    _T.CT_ComboBox: (INDENT, HEIGHT),
    _T.CT_HeaderSection: (0, ROW),
    _T.CT_LineEdit: _line_room,
    _T.CT_MenuItem: _entry_room,
    _T.CT_ToolButton: _tool_room,
    _T.CT_ItemViewItem: _row_room,
}


def _is_list_of_choices(widget: QWidget | None) -> bool:
    is_opened = widget is not None and widget.metaObject().className() == "QComboBoxListView"
    return is_opened or isinstance(widget, QListWidget)


def _has_text(option: QStyleOption) -> bool:
    only_icon = Qt.ToolButtonStyle.ToolButtonIconOnly
    return isinstance(option, QStyleOptionToolButton) and bool(option.text) and option.toolButtonStyle is not only_icon


def opens_menu(option: QStyleOption, widget: QWidget | None) -> bool:
    """Whether a click anywhere on a tool button with text opens its menu."""
    has_menu = QStyleOptionToolButton.ToolButtonFeature.HasMenu
    return (
        isinstance(option, QStyleOptionToolButton)
        and _has_text(option)
        and bool(option.features & has_menu)
        and isinstance(widget, QToolButton)
        and widget.popupMode() is not QToolButton.ToolButtonPopupMode.MenuButtonPopup
    )


def thin(rect: QRect) -> QRect:
    thin = QRect(rect.left(), 0, rect.width(), round(TRACK))
    thin.moveCenter(rect.center())
    return thin


def scroll_bar_part(option: QStyleOptionSlider, part: QStyle.SubControl) -> QRect:
    """The groove, the handle, or a way beside it; there are no arrows."""
    upright = option.orientation is Qt.Orientation.Vertical
    parts = QStyle.SubControl
    whole = option.rect
    length = whole.height() if upright else whole.width()
    span = option.maximum - option.minimum
    size = length if span <= 0 else min(length, max(24, length * option.pageStep // (span + option.pageStep)))
    start = QStyle.sliderPositionFromValue(
        option.minimum, option.maximum, option.sliderPosition, length - size, option.upsideDown
    )
    places = {
        parts.SC_ScrollBarGroove: (0, length),
        parts.SC_ScrollBarSlider: (start, size),
        parts.SC_ScrollBarSubPage: (0, start),
        parts.SC_ScrollBarAddPage: (start + size, length - start - size),
    }
    if part not in places:
        return QRect()
    at, extent = places[part]
    if upright:
        return QRect(whole.left(), whole.top() + at, whole.width(), extent)
    return QRect(whole.left() + at, whole.top(), extent, whole.height())
