"""One plot as a person handles it: a crosshair that all plots share, and keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.plots.canvas import PlotCanvas
from app.plots.source import PlotSource, Reading
from app.plots.time_axis import TimeAxis
from app.style.fonts import tabular
from app.style.palette import plot_colours

AWAY: Final = 12.0
EDGE: Final = 4.0
# More would hide the curves; the last row then counts the others.
MOST_ROWS: Final = 12
# Head, names of the columns, the count of others, and the padding.
LINES_BESIDE: Final = 4
LINE_GAP: Final = 4
STYLE: Final = "background: {ground}; border: 1px solid {edge}; border-radius: 4px; padding: 4px 6px;"
KEY_ZOOM: Final = 1.44
PAN_KEY_SHARE: Final = 0.15
NOT_OURS: Final = (
    Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier
)
KEYS: Final = "Left and right move the crosshair, plus and minus zoom, F shows the whole run, Enter enlarges."


class CrosshairTable(QLabel):
    """Table beside the crosshair of the chart that is under the mouse. It takes no clicks."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setFont(tabular(self.font()))
        self.head = ""
        self.rows: list[Reading] = []
        self.hide()

    def show_readings(self, head: str, readings: Sequence[Reading], at: QPointF, area: QRectF) -> None:
        rows = [reading for reading in readings if reading.label]
        fitting = int(area.bottom() / (self.fontMetrics().height() + LINE_GAP)) - LINES_BESIDE
        most = MOST_ROWS if len(rows) <= fitting else max(1, min(MOST_ROWS, fitting))
        self.head, self.rows = head, rows[:most]
        colours = plot_colours(self.palette())
        style = STYLE.format(ground=colours.ground.name(), edge=colours.muted.name())
        if style != self.styleSheet():  # setting it costs more than all the rest
            self.setStyleSheet(style)
        self.setText(self._html(len(rows) - len(self.rows), colours.muted.name()))
        self.adjustSize()
        right = at.x() + AWAY
        x = right if right + self.width() <= area.right() else at.x() - AWAY - self.width()
        top = area.top() + EDGE
        y = min(max(top, at.y() - self.height() / 2), max(top, area.bottom() - self.height() - EDGE))
        self.move(round(max(area.left(), x)), round(y))
        self.setVisible(bool(rows))

    def _html(self, left_out: int, muted: str) -> str:
        has_lines = any(row.smoothed for row in self.rows)
        names = ("", "smoothed", "value") if has_lines else ()
        lines = [f"<b>{escape(self.head)}</b><table cellspacing='0' cellpadding='1' width='100%'>"]
        if names:
            cells = "".join(f"<td align='right' style='color:{muted}'>&nbsp;&nbsp;{name}</td>" for name in names)
            lines.append(f"<tr>{cells}</tr>")
        for row in self.rows:
            colour = muted if row.colour is None else row.colour.name()
            sign = f"<span style='color:{colour}'>{'○' if row.is_ring else '■'}</span>" if row.colour else ""
            values = [row.smoothed] * has_lines + [f"{row.text} ★" if row.is_best else row.text]
            cells = "".join(f"<td align='right' style='white-space:pre'>   {escape(value)}</td>" for value in values)
            lines.append(f"<tr><td style='white-space:pre'>{sign} {escape(row.label)}</td>{cells}</tr>")
        more = f"<span style='color:{muted}'>+ {left_out} more</span>" if left_out else ""
        return "".join([*lines, "</table>", more])


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
