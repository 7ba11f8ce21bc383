"""Command palette: a line and a list over the window, from which runs, commands and settings are reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHeaderView, QLabel, QTreeWidget, QTreeWidgetItem, QWidget

from app.palette.palette_entries import PaletteEntry, best_entries
from app.style.icons import icon
from app.style.tones import muted
from app.widgets.build import lay_column, muted_label, named, search_line

WIDTH: Final = 680
TOP: Final = 6
SIDE: Final = 24
ROWS: Final = 10
ROW: Final = 28
# Entries that are listed at most.
FOUND: Final = 60
ENTRY: Final = Qt.ItemDataRole.UserRole
TITLE, DETAIL, KIND = range(3)
_MOVES: Final = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class CommandPalette(QFrame):
    """A pop-up below the top of its window. Arrows move, Enter chooses, Esc or a click elsewhere closes."""

    chosen = Signal(object)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window, Qt.WindowType.Popup)
        self._window = window
        self._entries: Sequence[PaletteEntry] = ()
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.line = search_line("Search runs, settings, commands", "Search runs, settings and commands")
        self.line.addAction(icon("search"), self.line.ActionPosition.LeadingPosition)
        self.view = self._make_view()
        self.nothing: QLabel = muted_label("Nothing found. Try fewer letters.")
        lay_column(self, self.line, self.view, self.nothing, spacing=8, margins=(8, 8, 8, 8))
        self.line.textChanged.connect(self._on_text_changed)
        self.line.returnPressed.connect(lambda: self._take(self.current()))
        self.line.installEventFilter(self)
        self.view.itemClicked.connect(lambda item: self._take(item.data(TITLE, ENTRY)))
        self.view.currentItemChanged.connect(self._on_moved)

    def _make_view(self) -> QTreeWidget:
        view = named(QTreeWidget(), "Found")
        view.setColumnCount(3)
        view.setHeaderHidden(True)
        view.setRootIsDecorated(False)
        view.setUniformRowHeights(True)
        view.setAllColumnsShowFocus(True)
        view.setFrameShape(QFrame.Shape.NoFrame)
        view.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the keyboard stays in the line
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.header().setStretchLastSection(False)
        view.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        view.header().setSectionResizeMode(TITLE, QHeaderView.ResizeMode.Stretch)
        return view

    def open(self, entries: Sequence[PaletteEntry]) -> None:
        self._entries = entries
        self.line.clear()
        self._on_text_changed("")
        self.show()
        self.line.setFocus(Qt.FocusReason.PopupFocusReason)

    def current(self) -> PaletteEntry | None:
        item = self.view.currentItem()
        found: PaletteEntry | None = None if item is None else item.data(TITLE, ENTRY)
        return found

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Send keys that move in the list from the line to it."""
        is_key = watched is self.line and event.type() == QEvent.Type.KeyPress
        if is_key and isinstance(event, QKeyEvent) and event.key() in _MOVES:
            QCoreApplication.sendEvent(self.view, event)
            return True
        return super().eventFilter(watched, event)

    def showEvent(self, event: QShowEvent) -> None:
        width = min(WIDTH, self._window.width() - 2 * SIDE)
        place = self._window.mapToGlobal(QPoint((self._window.width() - width) // 2, TOP))
        self.setGeometry(place.x(), place.y(), width, self.sizeHint().height())
        super().showEvent(event)

    def _on_text_changed(self, text: str) -> None:
        found, faint = best_entries(self._entries, text, FOUND), muted(self.palette())
        self.view.clear()
        for entry in found:
            item = QTreeWidgetItem([entry.title, entry.why_not or entry.detail, entry.kind])
            item.setData(TITLE, ENTRY, entry)
            item.setData(TITLE, Qt.ItemDataRole.AccessibleTextRole, entry.spoken)
            item.setToolTip(TITLE, entry.why_not)
            item.setSizeHint(TITLE, QSize(0, ROW))
            for column in (TITLE, DETAIL, KIND)[0 if entry.why_not else 1 :]:
                item.setForeground(column, faint)
            self.view.addTopLevelItem(item)
        if found:
            self.view.setCurrentIndex(self.view.model().index(0, 0))
        self.view.setFixedHeight(min(len(found), ROWS) * max(1, self.view.sizeHintForRow(0)) + 2)
        self.view.setVisible(bool(found))
        self.nothing.setVisible(not found)
        self._on_moved()
        self.resize(self.width(), self.sizeHint().height())

    def _on_moved(self) -> None:
        entry = self.current()
        self.line.setAccessibleDescription(entry.spoken if entry is not None else "Nothing found.")

    def _take(self, entry: PaletteEntry | None) -> None:
        if entry is None or entry.why_not:  # its row says why not
            return
        self.close()
        self.chosen.emit(entry)
