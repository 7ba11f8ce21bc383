"""The style of the controls where the system has none that fits: Fusion's behaviour, drawn like Windows 11.

A style and no stylesheet: see docs/decisions/0031-look.md. Each method here costs a call from Qt into Python, so
`styleHint` (4,000 calls until the window is shown) and `subElementRect` (1,800) are left to Fusion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import (
    QLineEdit,
    QListWidget,
    QProxyStyle,
    QStyle,
    QStyleOption,
    QStyleOptionComboBox,
    QStyleOptionComplex,
    QStyleOptionMenuItem,
    QStyleOptionProgressBar,
    QStyleOptionSlider,
    QStyleOptionToolButton,
    QWidget,
)

from app.style.control_drawing import chevron, focus_frame, is_framed, scroll_thumb, text_colour
from app.style.control_parts import (
    has_keyboard,
    level_at,
    paint_arrow_down,
    paint_button_ground,
    paint_check_box,
    paint_chosen_bar,
    paint_field,
    paint_focus,
    paint_frame,
    paint_ground_of_contents,
    paint_header,
    paint_line_edit,
    paint_nothing,
    paint_popup,
    paint_progress,
    paint_push_button,
    paint_radio_button,
    paint_tab,
    paint_tool_button,
    paint_waiting,
    with_text_colour,
    without_slab,
)

_P = QStyle.PrimitiveElement
_C = QStyle.ControlElement
_X = QStyle.ComplexControl
_M = QStyle.PixelMetric
_T = QStyle.ContentsType
_S = QStyle.StateFlag
Paint: TypeAlias = Callable[[QPainter, QStyleOption, QWidget | None], None]
# Of buttons, lists and lines to write in: they stand beside each other.
HEIGHT: Final = 32
# Of menu entries, headers of tables, tool buttons with text.
ROW: Final = 28
# From the edge of a list's line to its text, beyond what Fusion leaves.
INDENT: Final = 6
# From the edge of a line to write in to its text.
FIELD_FRAME: Final = 6
# Measures that are not Fusion's.
METRICS: Final = {
    _M.PM_IndicatorWidth: 18,
    _M.PM_IndicatorHeight: 18,
    _M.PM_ExclusiveIndicatorWidth: 18,
    _M.PM_ExclusiveIndicatorHeight: 18,
    _M.PM_CheckBoxLabelSpacing: 8,
    _M.PM_RadioButtonLabelSpacing: 8,
    _M.PM_ScrollBarExtent: 12,
    _M.PM_TabBarTabHSpace: 20,
    _M.PM_TabBarTabVSpace: 16,
    _M.PM_TabBarBaseOverlap: 0,
    _M.PM_MenuHMargin: 4,
    _M.PM_MenuVMargin: 4,
    _M.PM_HeaderMargin: 6,  # a column's title stands over the text of its cells
    _M.PM_FocusFrameHMargin: 5,  # the text of a row stands clear of the bar that says it is chosen
}
_ROOM: Final = {_T.CT_PushButton: (0, HEIGHT), _T.CT_ComboBox: (INDENT, HEIGHT), _T.CT_HeaderSection: (0, ROW)}


class ControlStyle(QProxyStyle):
    """Draws controls in the colours of their palette, so that a change of theme needs no new style."""

    def __init__(self) -> None:
        super().__init__("Fusion")
        self._primitives = {
            _P.PE_PanelButtonCommand: paint_push_button,
            _P.PE_PanelButtonTool: paint_tool_button,
            _P.PE_IndicatorCheckBox: paint_check_box,
            _P.PE_IndicatorItemViewItemCheck: paint_check_box,
            _P.PE_IndicatorRadioButton: paint_radio_button,
            _P.PE_PanelLineEdit: paint_line_edit,
            _P.PE_FrameLineEdit: paint_line_edit,
            _P.PE_Frame: paint_frame,
            _P.PE_FrameMenu: paint_frame,
            _P.PE_PanelTipLabel: paint_popup,
            _P.PE_PanelMenu: paint_popup,
            _P.PE_FrameFocusRect: paint_focus,
            _P.PE_FrameTabWidget: paint_nothing,
            _P.PE_FrameTabBarBase: paint_nothing,
            _P.PE_IndicatorArrowDown: paint_arrow_down,
        }
        self._controls = {
            _C.CE_TabBarTabShape: paint_tab,
            _C.CE_ProgressBarGroove: paint_nothing,
            _C.CE_HeaderSection: paint_header,
            _C.CE_HeaderEmptyArea: paint_header,
        }
        self._unseen = QPixmap(1, 1)

    def standardIcon(
        self, sign: QStyle.StandardPixmap, option: QStyleOption | None = None, widget: QWidget | None = None
    ) -> QIcon:
        """No signs on the buttons of dialogs: those of Fusion are dark on the accent's ground."""
        return QIcon() if sign.name.startswith("SP_Dialog") else super().standardIcon(sign, option, widget)

    def drawPrimitive(
        self, element: QStyle.PrimitiveElement, option: QStyleOption, painter: QPainter, widget: QWidget | None = None
    ) -> None:
        paint = self._primitives.get(element)
        if paint is None:
            super().drawPrimitive(element, option, painter, widget)
            if element is _P.PE_PanelItemViewItem:
                paint_chosen_bar(painter, option)
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint(painter, option, widget)
        painter.restore()

    def drawControl(
        self, element: QStyle.ControlElement, option: QStyleOption, painter: QPainter, widget: QWidget | None = None
    ) -> None:
        if element is _C.CE_MenuItem and isinstance(option, QStyleOptionMenuItem):
            option = without_slab(painter, option)
        elif element is _C.CE_TabBarTabLabel or element is _C.CE_PushButtonLabel:
            option = with_text_colour(option)
        elif element is _C.CE_ProgressBarContents and isinstance(option, QStyleOptionProgressBar):
            is_known = option.maximum > option.minimum
            _saved(painter, option, widget, paint_progress if is_known else paint_waiting)
            if not is_known:
                unseen = QPainter(self._unseen)  # Fusion has the bar drawn again and again
                super().drawControl(element, option, unseen, widget)
                unseen.end()
            return
        paint = self._controls.get(element)
        if paint is None:
            super().drawControl(element, option, painter, widget)
        else:
            _saved(painter, option, widget, paint)

    def drawComplexControl(
        self,
        control: QStyle.ComplexControl,
        option: QStyleOptionComplex,
        painter: QPainter,
        widget: QWidget | None = None,
    ) -> None:
        if control is _X.CC_ScrollBar and isinstance(option, QStyleOptionSlider):
            _saved(painter, option, widget, self._paint_scroll_bar)
        elif control is _X.CC_ComboBox:
            _saved(painter, option, widget, self._paint_combo)
        else:
            super().drawComplexControl(control, option, painter, widget)

    def subControlRect(
        self,
        control: QStyle.ComplexControl,
        option: QStyleOptionComplex,
        part: QStyle.SubControl,
        widget: QWidget | None = None,
    ) -> QRect:
        if control is _X.CC_ScrollBar and isinstance(option, QStyleOptionSlider):
            return scroll_bar_part(option, part)
        rect = super().subControlRect(control, option, part, widget)  # type: ignore[arg-type]  # Qt takes None
        if control is _X.CC_ComboBox and part is QStyle.SubControl.SC_ComboBoxEditField:
            rect.adjust(INDENT, 0, 0, 0)
        return rect

    def sizeFromContents(
        self, kind: QStyle.ContentsType, option: QStyleOption, size: QSize, widget: QWidget | None = None
    ) -> QSize:
        whole = super().sizeFromContents(kind, option, size, widget)  # type: ignore[arg-type]  # Qt takes None
        more = more_room(kind, option, widget)
        if more is None:
            return whole
        width, height = more
        return QSize(whole.width() + width, max(height, whole.height()))

    def pixelMetric(
        self, metric: QStyle.PixelMetric, option: QStyleOption | None = None, widget: QWidget | None = None
    ) -> int:
        if metric is _M.PM_DefaultFrameWidth and isinstance(widget, QLineEdit):
            return FIELD_FRAME
        own = METRICS.get(metric)
        return super().pixelMetric(metric, option, widget) if own is None else own

    def _paint_combo(self, painter: QPainter, option: QStyleOption, widget: QWidget | None) -> None:
        assert isinstance(option, QStyleOptionComboBox)
        if option.frame and option.editable:
            paint_field(painter, option)
        elif option.frame:
            paint_button_ground(painter, option, level_at(option))
            if has_keyboard(option):
                focus_frame(painter, option.rect, option.palette)
        arrow = self.subControlRect(_X.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxArrow, widget)
        chevron(painter, arrow, text_colour(option.palette))

    def _paint_scroll_bar(self, painter: QPainter, option: QStyleOption, widget: QWidget | None) -> None:
        assert isinstance(option, QStyleOptionSlider)
        paint_ground_of_contents(painter, option, widget)
        if option.maximum <= option.minimum:
            return
        upright = option.orientation is Qt.Orientation.Vertical
        wide = bool(option.state & (_S.State_MouseOver | _S.State_Sunken))
        handle = scroll_bar_part(option, QStyle.SubControl.SC_ScrollBarSlider)
        scroll_thumb(painter, handle, option.palette, upright=upright, wide=wide)


def _saved(painter: QPainter, option: QStyleOption, widget: QWidget | None, paint: Paint) -> None:
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    paint(painter, option, widget)
    painter.restore()


def more_room(kind: QStyle.ContentsType, option: QStyleOption, widget: QWidget | None) -> tuple[int, int] | None:
    """A control's extra width over Fusion's and its least height; None: as large as Fusion's."""
    if kind is _T.CT_LineEdit:
        return (0, HEIGHT) if is_framed(option) else None
    if kind is _T.CT_MenuItem:
        rule = QStyleOptionMenuItem.MenuItemType.Separator
        return None if isinstance(option, QStyleOptionMenuItem) and option.menuItemType is rule else (8, ROW)
    if kind is _T.CT_ToolButton:
        style = Qt.ToolButtonStyle.ToolButtonIconOnly
        has_text = isinstance(option, QStyleOptionToolButton) and option.text and option.toolButtonStyle is not style
        return (8, ROW) if has_text else None
    if kind is _T.CT_ItemViewItem:
        is_opened = widget is not None and widget.metaObject().className() == "QComboBoxListView"
        return (0, ROW) if is_opened or isinstance(widget, QListWidget) else None
    return _ROOM.get(kind)


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
