"""An editor for code with line numbers, which can mark the line of an error."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QFontDatabase, QPainter, QPaintEvent, QPalette, QResizeEvent, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from app.views.style.tones import muted, tint, tone

PADDING: Final = 8


class NumberedEditor(QPlainTextEdit):
    """Plain text in the fixed font, its lines numbered at the left; Tab leaves it."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.wrong_line: int | None = None
        self._numbers = _Numbers(self)
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.blockCountChanged.connect(self._fit)
        self.updateRequest.connect(self._on_update_requested)
        self._fit()

    def mark_line(self, line: int | None) -> None:
        """Marks a line, counted from 1, as wrong; None marks none."""
        self.wrong_line = line
        block = self.document().findBlockByNumber(-1 if line is None else line - 1)
        marks = []
        if block.isValid():
            mark = QTextEdit.ExtraSelection()
            mark.cursor = QTextCursor(block)
            mark.format.setBackground(tint(self.palette(), "error"))
            mark.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
            marks.append(mark)
        self.setExtraSelections(marks)
        self._numbers.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()
        elif event.type() == QEvent.Type.PaletteChange:
            self.mark_line(self.wrong_line)

    @property
    def gutter_px(self) -> int:
        """The width of the numbers."""
        digits = max(2, len(str(self.blockCount())))
        return digits * self.fontMetrics().horizontalAdvance("9") + 2 * PADDING

    def paint_numbers(self, gutter: QWidget, event: QPaintEvent) -> None:
        """Draws the numbers of the lines in sight; called by the gutter."""
        painter = QPainter(gutter)
        painter.setFont(self.font())
        palette = self.palette()
        block = self.firstVisibleBlock()
        while block.isValid():
            area = self.blockBoundingGeometry(block).translated(self.contentOffset()).toRect()
            if area.top() > event.rect().bottom():
                return
            number = block.blockNumber() + 1
            is_wrong = number == self.wrong_line
            row = QRect(0, area.top(), gutter.width(), area.height())
            if is_wrong:
                painter.fillRect(row, tint(palette, "error"))
            painter.setPen(tone(palette, "error") if is_wrong else muted(palette))
            flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(row.adjusted(0, 0, -PADDING, 0), flags, str(number))
            block = block.next()

    def _fit(self) -> None:
        self.setViewportMargins(self.gutter_px, 0, 0, 0)
        self._place()

    def _place(self) -> None:
        inner = self.contentsRect()
        self._numbers.setGeometry(inner.left(), inner.top(), self.gutter_px, inner.height())

    def _on_update_requested(self, area: QRect, scrolled_px: int) -> None:
        if scrolled_px:
            self._numbers.scroll(0, scrolled_px)
        else:
            self._numbers.update(0, area.y(), self._numbers.width(), area.height())


class _Numbers(QWidget):
    """The gutter of a `NumberedEditor`."""

    def __init__(self, editor: NumberedEditor) -> None:
        super().__init__(editor)
        self._editor = editor
        self.setAutoFillBackground(True)
        self.setBackgroundRole(QPalette.ColorRole.Base)

    def sizeHint(self) -> QSize:
        return QSize(self._editor.gutter_px, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._editor.paint_numbers(self, event)
