"""The part of a plot in which curves lie: pyqtgraph's view with the gestures of a chart."""

from __future__ import annotations

from typing import Any, Final

import pyqtgraph
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QPalette
from PySide6.QtWidgets import QApplication

from app.plots.drawing import hairline

# A drag that is lower than this share of the plot zooms time only.
FLAT_SHARE: Final = 0.25
# Pixels: a narrower drag zooms values only, and where it is flat too, nothing.
LEAST_DRAG: Final = 4.0
# Eighths of a degree that the wheel turns while the view moves by its own width.
WHEEL_PAN: Final = 1200


class PlotView(pyqtgraph.ViewBox):
    """Drag to zoom (a flat drag zooms time, a tall one both), wheel to zoom time, Ctrl+wheel to zoom values.

    Shift+wheel, a sideways wheel and a middle drag move. Views that are linked show the same time at any width:
    pyqtgraph's own link lines up what lies above each other on the screen, so that a narrower plot shows less.
    """

    fit_requested = Signal()
    menu_requested = Signal(QPoint)

    def __init__(self) -> None:
        super().__init__(enableMenu=False, defaultPadding=0.0)
        self.setMouseMode(self.RectMode)
        self.disableAutoRange()

    def show_values(self, low: float, high: float) -> None:
        if self.viewRange()[1] != [low, high]:
            self.setRange(yRange=(low, high), padding=0, disableAutoRange=False)

    def linkedViewChanged(self, view: Any, axis: int) -> None:
        if view is None or self.linksBlocked or axis != self.XAxis:
            return
        view.blockLink(True)
        try:
            self.setRange(xRange=view.viewRange()[0], padding=0, disableAutoRange=False)
        finally:
            view.blockLink(False)

    def wheelEvent(self, event: Any, axis: int | None = None) -> None:
        """Zooms time; with Ctrl, or over the value axis, values; with Shift, or sideways, moves."""
        self.updateMatrix()
        sideways = event.orientation() == Qt.Orientation.Horizontal
        if sideways or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.move_by_hand(-event.delta() / WHEEL_PAN)
            event.accept()
        elif event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(event, axis=self.YAxis)
        else:
            super().wheelEvent(event, axis=self.XAxis if axis is None else axis)

    def move_by_hand(self, share: float) -> None:
        low, high = self.viewRange()[0]
        self.translateBy(x=share * (high - low))
        self.sigRangeChangedManually.emit([True, False])

    def zoom_by_hand(self, factor: float, around: float | None = None) -> None:
        """Shows `factor` times as much around a place that stays, or around the middle."""
        low, high = self.viewRange()[0]
        self.scaleBy(x=factor, center=((low + high) / 2 if around is None else around, 0.0))
        self.sigRangeChangedManually.emit([True, False])

    def mouseDragEvent(self, event: Any, axis: int | None = None) -> None:
        self.updateMatrix()  # what is painted may lag behind the layout
        if event.button() == Qt.MouseButton.MiddleButton:
            super().mouseDragEvent(event, axis=self.XAxis)
        elif event.button() == Qt.MouseButton.LeftButton:
            super().mouseDragEvent(event, axis=axis)

    def updateScaleBox(self, start: QPointF, end: QPointF) -> None:
        """Shows the dragged rectangle: as high as the plot while flat, as wide while narrow."""
        chosen = QRectF(QPointF(start), QPointF(end)).normalized()
        chosen.setCoords(
            max(0.0, chosen.left()), max(0.0, chosen.top()),
            min(self.width(), chosen.right()), min(self.height(), chosen.bottom()),
        )  # fmt: skip
        if self._is_flat(chosen.height()):
            chosen.setTop(0.0)
            chosen.setBottom(self.height())
        elif chosen.width() < LEAST_DRAG:
            chosen.setLeft(0.0)
            chosen.setRight(self.width())
        colour = QApplication.palette().color(QPalette.ColorRole.Highlight)
        self.rbScaleBox.setPen(hairline(colour))
        colour.setAlpha(40)
        self.rbScaleBox.setBrush(QBrush(colour))
        super().updateScaleBox(chosen.topLeft(), chosen.bottomRight())

    def showAxRect(self, chosen: QRectF, **_more: Any) -> None:
        """Zooms to the dragged rectangle; values only where it is tall, time only where it is wide."""
        # Measured before anything is shown: the chart fits its values to another part as soon as that is set.
        (first, last), (low, high) = self.viewRange()
        chosen = chosen.normalized()
        left, right = max(first, chosen.left()), min(last, chosen.right())
        bottom, top = max(low, chosen.top()), min(high, chosen.bottom())
        is_tall = not self._is_flat((top - bottom) / (high - low) * self.height())
        is_wide = (right - left) / (last - first) * self.width() >= LEAST_DRAG
        if is_wide:
            self.setRange(xRange=(left, right), padding=0, disableAutoRange=False)
        if is_tall:
            self.show_values(bottom, top)
        if is_wide or is_tall:
            self.sigRangeChangedManually.emit([is_wide, is_tall])

    def mouseClickEvent(self, event: Any) -> None:
        if event.button() == Qt.MouseButton.RightButton:
            self.menu_requested.emit(event.screenPos().toPoint())
            event.accept()
        elif event.button() == Qt.MouseButton.LeftButton and event.double():
            self.fit_requested.emit()
            event.accept()

    def keyPressEvent(self, event: Any) -> None:
        event.ignore()

    def _is_flat(self, pixels: float) -> bool:
        return bool(pixels < FLAT_SHARE * self.height())
