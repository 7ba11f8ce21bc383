"""Command palette: a line and a list over the window, from which runs, commands and settings are reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, QItemSelectionModel, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QFrame, QLabel, QListView, QWidget

from app.state.fuzzy_match import Index
from app.state.palette_entries import PaletteEntry
from app.views.style.control_drawing import veil
from app.views.style.icons import icon
from app.views.widgets.build import lay_column, muted_label, named, search_line
from app.views.widgets.card import CORNER
from app.views.window.palette_list import ROW, PaletteDelegate, PaletteModel

WIDTH: Final = 640
TOP: Final = 6
SIDE: Final = 24
ROWS: Final = 10
FOUND: Final = 60
"""Entries that are listed at most."""
_MOVES: Final = {
    Qt.Key.Key_Up: -1,
    Qt.Key.Key_Down: 1,
    Qt.Key.Key_PageUp: 1 - ROWS,
    Qt.Key.Key_PageDown: ROWS - 1,
}


class CommandPalette(QFrame):
    """Lies over the top of its window. Arrows move, Enter chooses, Esc or a click elsewhere closes.

    Signals:
        chosen: An entry (`PaletteEntry`); the palette is closed by then.
        closed: It was closed without a choice.
    """

    chosen = Signal(object)
    closed = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._index: Index[PaletteEntry] = Index(())
        self._window = window
        self._before: QWidget | None = None
        self.line = search_line("Search runs, settings, commands", "Search runs, settings and commands")
        self.line.addAction(icon("search"), self.line.ActionPosition.LeadingPosition)
        self.model = PaletteModel(self)
        self.view = named(QListView(), "Found")
        self.view.setModel(self.model)
        self.view.setItemDelegate(PaletteDelegate(self.view))
        self.view.setFrameShape(QFrame.Shape.NoFrame)
        self.view.setUniformItemSizes(True)
        self.view.setMouseTracking(True)
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the keyboard stays in the line
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.nothing: QLabel = muted_label("Nothing found. Try fewer letters.")
        self.nothing.setContentsMargins(12, 8, 12, 8)
        lay_column(self, self.line, self.view, self.nothing, spacing=8, margins=(8, 8, 8, 8))
        self.line.textChanged.connect(self._on_text_changed)
        self.view.clicked.connect(self._on_clicked)
        self.line.installEventFilter(self)
        window.installEventFilter(self)
        self.hide()

    def open(self, entries: Sequence[PaletteEntry]) -> None:
        """Opens it, empty, on what can be reached now."""
        self._before = self._window.focusWidget()
        self._index = Index(entries)
        self.line.clear()
        self._on_text_changed("")
        self._place()
        self.show()
        self.raise_()
        self.line.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def add(self, entries: Sequence[PaletteEntry]) -> None:
        """Adds entries that took a while to be found; what is chosen stays chosen."""
        current = self.current()
        self._index = Index([*self._index.entries, *entries])
        self._on_text_changed(self.line.text())
        rows = range(self.model.rowCount())
        row = next((row for row in rows if self.model.entry(row) == current), -1)
        if row >= 0:
            self._choose_row(row)

    def current(self) -> PaletteEntry | None:
        """The entry that Enter takes."""
        return self.model.entry(self.view.currentIndex().row())

    def close_palette(self) -> None:
        """Closes it; the keyboard returns to where it was."""
        if self.isHidden():
            return
        self._leave()
        self.closed.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keys of the line that move in the list, the line's loss of the keyboard, the window's size."""
        if watched is self.line and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._on_key(event)
        if watched is self.line and isinstance(event, QFocusEvent) and event.type() == QEvent.Type.FocusOut:
            # Another window in front, or the line's own menu, does not move the keyboard within this window.
            if event.reason() not in (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason):
                self._before = None
                self.close_palette()
        elif watched is self._window and event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """A card that stands out from whatever lies under it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(veil(self.palette(), 0.28))
        painter.setBrush(self.palette().brush(QPalette.ColorRole.Base))
        painter.drawRoundedRect(self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5), CORNER, CORNER)

    def _on_key(self, event: QKeyEvent) -> bool:
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape:
            self.close_palette()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._take(self.current())
        elif key in _MOVES:
            self._move(_MOVES[key])
        elif key not in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):  # there is nowhere else to go
            return False
        return True

    def _move(self, rows: int) -> None:
        """Moves in the list; one row beyond an end leads to the other."""
        many = self.model.rowCount()
        if not many:
            return
        row = self.view.currentIndex().row() + rows
        self._choose_row(row % many if abs(rows) == 1 else min(many - 1, max(0, row)))

    def _choose_row(self, row: int) -> None:
        index = self.model.index(row)
        self.view.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.view.scrollTo(index)
        entry = self.model.entry(row)
        self.line.setAccessibleDescription(entry.spoken if entry is not None else "Nothing found.")

    def _on_text_changed(self, text: str) -> None:
        self.model.show(self._index.best(text, FOUND), text)
        many = self.model.rowCount()
        self.view.setVisible(many > 0)
        self.nothing.setVisible(not many)
        self._choose_row(0)
        self._place()

    def _on_clicked(self, index: QModelIndex) -> None:
        self._take(self.model.entry(index.row()))

    def _take(self, entry: PaletteEntry | None) -> None:
        if entry is None or entry.why_not:  # its row says why not
            return
        self._leave()
        self.chosen.emit(entry)

    def _leave(self) -> None:
        before, self._before = self._before, None
        self.hide()
        if before is not None:
            before.setFocus(Qt.FocusReason.OtherFocusReason)

    def _place(self) -> None:
        parent = self._window
        width = min(WIDTH, parent.width() - 2 * SIDE)
        row = max(ROW, self.view.sizeHintForRow(0))
        room = parent.height() - 2 * SIDE - self.line.sizeHint().height() - 24
        rows = min(self.model.rowCount(), ROWS, max(1, room // row))
        self.view.setFixedHeight(rows * row)
        self.setGeometry((parent.width() - width) // 2, TOP, width, self.sizeHint().height())
