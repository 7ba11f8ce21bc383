"""One plot as a person handles it: the picture, a crosshair over it, and the gestures."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPalette, QWheelEvent
from PySide6.QtWidgets import QWidget

from app.views.plots import drawing
from app.views.plots.canvas import PlotCanvas
from app.views.plots.scale import Scale
from app.views.plots.source import PlotSource
from app.views.plots.time_axis import TimeAxis
from app.views.style.palette import plot_colours

DRAG_PIXELS: Final = 5
WHEEL_FACTOR: Final = 1.2
PAN_KEY_SHARE: Final = 0.15


class Chart(PlotCanvas):
    """A plot with a crosshair that all plots share.

    Drag to zoom (a flat drag zooms time, a tall one both), wheel to zoom time, Ctrl+wheel to zoom values,
    Shift+wheel or middle drag to move, double-click or F to fit; ← → move, + − zoom, Shift+← → move the crosshair.
    """

    def __init__(self, source: PlotSource, time_axis: TimeAxis, name: str, parent: QWidget | None = None) -> None:
        super().__init__(source, time_axis, name, parent)
        self._press: QPointF | None = None
        self._drag_to: QPointF | None = None
        self._pan_from: float | None = None
        self.setAccessibleDescription("Drag or turn the wheel to zoom, double-click or press F to fit.")
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        time_axis.cursor_changed.connect(self.update)

    def _paint_over(self, painter: QPainter, area: QRectF) -> None:
        colours, cursor = plot_colours(self.palette()), self.time_axis.cursor
        if cursor is not None and self.time_axis.low <= cursor <= self.time_axis.high:
            x = self.x_of(cursor)
            painter.setPen(drawing.hairline(colours.muted))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        if self._press is not None and self._drag_to is not None:
            self._draw_selection(painter, area)
        if self.hasFocus():
            painter.setPen(drawing.hairline(self.palette().color(QPalette.ColorRole.Highlight)))
            painter.drawRect(area.adjusted(-1, -1, 1, 1))

    def _draw_selection(self, painter: QPainter, area: QRectF) -> None:
        chosen = self._selection(area)
        if chosen is not None:
            colour = self.palette().color(QPalette.ColorRole.Highlight)
            painter.setPen(drawing.hairline(colour))
            colour.setAlpha(40)
            painter.setBrush(colour)
            painter.drawRect(chosen)

    def _selection(self, area: QRectF) -> QRectF | None:
        """The rectangle that is being dragged: full height while the drag is flat."""
        if self._press is None or self._drag_to is None:
            return None
        if abs(self._drag_to.x() - self._press.x()) < DRAG_PIXELS:
            return None
        chosen = QRectF(self._press, self._drag_to).normalized()
        if chosen.height() < 0.25 * area.height():
            chosen.setTop(area.top())
            chosen.setBottom(area.bottom())
        return chosen.intersected(area)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begins a zoom (left) or a move (middle)."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._press = event.position()
        elif event.button() == Qt.MouseButton.MiddleButton:
            self._pan_from = event.position().x()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Moves the crosshair, the rectangle or the view."""
        area, position = self.plot_area(), event.position()
        if self._press is not None:
            self._drag_to = position
            self.update()
        elif self._pan_from is not None:
            self.time_axis.pan((self._pan_from - position.x()) / area.width())
            self._pan_from = position.x()
        inside = area.left() <= position.x() <= area.right()
        self.time_axis.set_cursor(self.value_at(position.x()) if inside else None)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Zooms to the rectangle."""
        area = self.plot_area()
        chosen = self._selection(area)
        self._press = self._drag_to = self._pan_from = None
        if chosen is None or chosen.width() < DRAG_PIXELS or event.button() != Qt.MouseButton.LeftButton:
            self.update()
            return
        if chosen.height() < area.height() - 1 and self._scale is not None:
            low = self._scale.value_at(chosen.bottom(), area.top(), area.height())
            high = self._scale.value_at(chosen.top(), area.top(), area.height())
            self._chosen_scale = Scale(low, high, self._scale.log)
        self.time_axis.show_range(self.value_at(chosen.left()), self.value_at(chosen.right()))
        self._discard_picture()

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        """Fits everything."""
        self.fit()

    def leaveEvent(self, event: QEvent) -> None:
        """Takes the crosshair away."""
        self.time_axis.set_cursor(None)
        super().leaveEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zooms time; with Ctrl values; with Shift, or sideways, moves."""
        turn, position = event.angleDelta(), event.position()
        modifiers = event.modifiers()
        if turn.x() and not turn.y():
            self.time_axis.pan(-turn.x() / 1200)
        elif modifiers & Qt.KeyboardModifier.ShiftModifier:
            self.time_axis.pan(-turn.y() / 1200)
        elif modifiers & Qt.KeyboardModifier.ControlModifier and self._scale is not None:
            area = self.plot_area()
            around = self._scale.value_at(position.y(), area.top(), area.height())
            self._chosen_scale = self._scale.zoomed(WHEEL_FACTOR ** (-turn.y() / 120), around)
            self._discard_picture()
        else:
            self.time_axis.zoom(WHEEL_FACTOR ** (-turn.y() / 120), self.value_at(position.x()))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The same from the keyboard."""
        key, shifted = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            sign = 1 if key == Qt.Key.Key_Right else -1
            if shifted:
                self._step_cursor(sign)
            else:
                self.time_axis.pan(sign * PAN_KEY_SHARE)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.time_axis.zoom(1 / WHEEL_FACTOR**2, self.time_axis.cursor)
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self.time_axis.zoom(WHEEL_FACTOR**2, self.time_axis.cursor)
        elif key in (Qt.Key.Key_F, Qt.Key.Key_Home):
            self.fit()
        elif key == Qt.Key.Key_Escape and self.time_axis.cursor is not None:
            self.time_axis.set_cursor(None)
        else:
            super().keyPressEvent(event)

    def _step_cursor(self, sign: int) -> None:
        """The crosshair, moved by about two pixels and at least one step."""
        axis = self.time_axis
        start = axis.cursor if axis.cursor is not None else (axis.low + axis.high) / 2
        least = 1.0 if axis.axis == "step" else 0.0
        moved = start + sign * max(least, 2 * axis.span / self.plot_area().width())
        axis.set_cursor(min(max(moved, axis.low), axis.high))
        self.setAccessibleDescription("; ".join(f"{r.label} {r.text}" for r in self.readings()))
