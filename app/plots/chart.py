"""One plot as a person handles it: a crosshair that all plots share, and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, Signal
from PySide6.QtGui import (
    QKeyEvent,
    QMouseEvent,
)

from app.plots.canvas import PlotCanvas
from app.plots.crosshair_table import CrosshairTable
from app.plots.source import PlotSource
from app.plots.time_axis import TimeAxis

KEY_ZOOM: Final = 1.44
PAN_KEY_SHARE: Final = 0.15
NOT_OURS: Final = (
    Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier
)
KEYS: Final = "Left and right move the crosshair, plus and minus zoom, F shows the whole run, Enter enlarges."


class Chart(PlotCanvas):
    """One plot as a person handles it. Gestures: see `PlotView`; double-click, F or Home fit, + − zoom.

    ← → move the crosshair, with Shift the view; Enter asks for all the room.
    """

    menu_requested = Signal(QPoint)
    enlarge_requested = Signal()

    def __init__(self, source: PlotSource, time_axis: TimeAxis, name: str) -> None:
        super().__init__(source, time_axis, name)
        self.where: Callable[[float], str] = lambda at: f"{at:,.0f}"
        self.is_enlarged: Callable[[], bool] = bool
        self.table = CrosshairTable(self)
        self._table_at: QPointF | None = None
        self.setAccessibleDescription(KEYS)
        time_axis.cursor_changed.connect(self._on_cursor_changed)
        self.renewed.connect(self._show_table)
        self.view_box.fit_requested.connect(self.fit)
        self.view_box.menu_requested.connect(self.menu_requested)

    def _on_cursor_changed(self) -> None:
        cursor = self.time_axis.cursor
        self.cross.setVisible(cursor is not None and self.time_axis.low <= cursor <= self.time_axis.high)
        if cursor is not None:
            self.cross.setPos(cursor)
        self._show_table()

    def _show_table(self) -> None:
        """Shows the values at the crosshair, in the chart where it is moved."""
        cursor, at = self.time_axis.cursor, self._table_at
        if cursor is None or at is None or self._scale is None:
            self.table.hide()
        else:
            self.table.show_readings(self.where(cursor), self.readings(), at, self.plot_area())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        area, at = self.plot_area(), event.position()
        inside = area.left() <= at.x() <= area.right()
        self._table_at = at if inside and not event.buttons() else None
        self.time_axis.set_cursor(self.value_at(at.x()) if inside else None)

    def leaveEvent(self, event: QEvent) -> None:
        self._table_at = None
        self.time_axis.set_cursor(None)
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, shifted = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.modifiers() & NOT_OURS:
            event.ignore()
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            sign = 1 if key == Qt.Key.Key_Right else -1
            if shifted:
                self.view_box.move_by_hand(sign * PAN_KEY_SHARE)
            else:
                self._step_cursor(sign)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.view_box.zoom_by_hand(1 / KEY_ZOOM, self.time_axis.cursor)
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self.view_box.zoom_by_hand(KEY_ZOOM, self.time_axis.cursor)
        elif key in (Qt.Key.Key_F, Qt.Key.Key_Home):
            self.fit()
        elif key == Qt.Key.Key_Escape and self.time_axis.cursor is not None:
            self.time_axis.set_cursor(None)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) or (key == Qt.Key.Key_Escape and self.is_enlarged()):
            self.enlarge_requested.emit()
        elif key == Qt.Key.Key_Menu:
            self.menu_requested.emit(self.mapToGlobal(self.plot_area().center().toPoint()))
        else:
            event.ignore()

    def _step_cursor(self, sign: int) -> None:
        """Moves the crosshair by about two pixels and at least one step."""
        axis = self.time_axis
        start = axis.cursor if axis.cursor is not None else (axis.low + axis.high) / 2
        least = 1.0 if axis.axis == "step" else 0.0
        moved = start + sign * max(least, 2 * axis.span / self.plot_area().width())
        moved = min(max(moved, axis.low), axis.high)
        self._table_at = QPointF(self.x_of(moved), self.plot_area().center().y())
        axis.set_cursor(moved)
        values = "; ".join(f"{r.label} {r.text}".strip() for r in self.readings())
        self.setAccessibleDescription(f"{self.where(moved)}: {values}")
