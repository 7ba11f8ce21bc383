"""The desk: runs and pages, with New run as a panel beside them where there is room, and over them where not."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from app.style.tones import is_dark, rule
from app.widgets.build import lay_column

# From this width on the sheet stands beside the charts, not over them.
WIDE: Final = 1240
SHEET_WIDTH: Final = 420
LEAST_SHEET: Final = 340
# Of what is under the sheet, so that it is seen to be a sheet.
LEFT_VISIBLE: Final = 48
GRIP: Final = 5
SHADOW: Final = 16
_DIM: Final = {False: QColor(0, 0, 0, 46), True: QColor(0, 0, 0, 120)}


class Shade(QWidget):
    """Dims what lies under the sheet; a click on it closes the sheet."""

    clicked = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.edge = 0
        self.hide()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        dim = _DIM[is_dark(self.palette())]
        painter.fillRect(0, 0, self.edge, self.height(), dim)
        shadow = QLinearGradient(self.edge - SHADOW, 0, self.edge, 0)
        shadow.setColorAt(0, QColor(0, 0, 0, 0))
        shadow.setColorAt(1, QColor(0, 0, 0, 60))
        painter.fillRect(QRect(self.edge - SHADOW, 0, SHADOW, self.height()), shadow)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()
        self.clicked.emit()


class Grip(QWidget):
    """The sheet's left edge, by which it is made wider.

    Signals:
        dragged: Where the mouse is, from the left of the window.
    """

    dragged = Signal(int)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setCursor(Qt.CursorShape.SplitHCursor)

    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(0, 0, 1, self.height(), rule(self.palette()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.dragged.emit(self.mapTo(self.window(), event.position().toPoint()).x())


class SheetFrame(QWidget):
    """The ground of the sheet, and its grip.

    Signals:
        escaped: Esc was pressed where nothing in the sheet has a use for it.
    """

    escaped = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAutoFillBackground(True)
        self.grip = Grip(self)
        self.column = lay_column(self, margins=(1, 0, 0, 0))
        self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.grip.setGeometry(0, 0, GRIP, self.height())
        self.grip.raise_()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)


class Desk(QWidget):
    """Places the sheet beside or over the panes, without knowing their contents.

    Signals:
        close_requested: Esc, or a click beside the sheet.
        placed: The desk or the sheet has another size.
    """

    close_requested = Signal()
    placed = Signal()

    def __init__(self, panes: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.sheet_width = SHEET_WIDTH
        self._panes = panes
        self._sheet: QWidget | None = None
        self._is_open = False
        panes.setParent(self)
        self.shade = Shade(self)
        self.frame = SheetFrame(self)
        self.shade.clicked.connect(self.close_requested)
        self.frame.grip.dragged.connect(self._on_dragged)
        self.frame.escaped.connect(self.close_requested)

    def put_sheet(self, sheet: QWidget) -> None:
        self._sheet = sheet
        self.frame.column.addWidget(sheet, 1)

    @property
    def is_wide(self) -> bool:
        return self.width() >= WIDE

    @property
    def is_open(self) -> bool:
        return self._is_open

    def set_open(self, is_open: bool) -> None:
        self._is_open = is_open
        self._arrange()

    def minimumSizeHint(self) -> QSize:
        """Of the panes: the sheet lies over them where there is no room for both."""
        return self._panes.minimumSizeHint()

    def sizeHint(self) -> QSize:
        return self._panes.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._arrange()

    def _arrange(self) -> None:
        width, height = self.width(), self.height()
        sheet = self._sheet_room(width) if self._is_open else 0
        beside = self._is_open and self.is_wide
        self._panes.setGeometry(0, 0, width - sheet if beside else width, height)
        self.shade.edge = width - sheet
        self.shade.setGeometry(0, 0, width, height)
        self.frame.setGeometry(width - sheet, 0, sheet, height)
        self.shade.setVisible(self._is_open and not beside)
        self.frame.setVisible(self._is_open)
        if self._is_open:
            self.shade.raise_()
            self.frame.raise_()
            self.shade.update()
        self.placed.emit()

    def _sheet_room(self, width: int) -> int:
        own = 0 if self._sheet is None else self._sheet.minimumSizeHint().width() + 1
        least = max(LEAST_SHEET, own)
        most = max(least, width - LEFT_VISIBLE if not self.is_wide else width // 2)
        return min(max(self.sheet_width, least), most, width)

    def _on_dragged(self, x: int) -> None:
        self.sheet_width = max(LEAST_SHEET, self.mapTo(self.window(), self.rect().topRight()).x() + 1 - x)
        self._arrange()
