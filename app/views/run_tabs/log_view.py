"""Log of one process: follows its end, can be searched, holds a bounded number of lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QFrame, QListView, QToolButton, QWidget

from app.models.rank_log import RankLog
from app.views.style.icons import icon
from app.views.widgets.build import lay_column, lay_row, muted_label, named, search_line
from app.views.widgets.empty_note import WithNote
from core.machine.devices.names import RankNames

NOTHING: Final = "The output of all processes appears here."


class LogView(QWidget):
    """The log of one process of the run, chosen by a combo; the newest line stays in sight until one scrolls up."""

    log_chosen = Signal(object)

    def __init__(self, log: RankLog, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._log = log
        self._names = RankNames()
        self.source = named(QComboBox(), "Log source", "Choose whose log to show")
        self.source.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.search = search_line("Search (Enter: next, Shift+Enter: previous)", "Search the log")
        self.found = muted_label(wraps=False)
        self.follow = QToolButton()
        self.follow.setText("Follo&w")
        self.follow.setIcon(icon("follow"))
        self.follow.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.follow.setCheckable(True)
        self.follow.setChecked(True)
        self.follow.setToolTip("Follow the newest line")
        self.lines = named(QListView(), "Log")
        self.lines.setModel(log.model)
        self.lines.setUniformItemSizes(True)
        self.lines.setFrameShape(QFrame.Shape.NoFrame)
        self.lines.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.lines.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.lines.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.page = WithNote(self.lines, NOTHING)
        parts = (self.source, self.search, self.found, self.follow)
        bar = lay_row(None, *parts, spacing=8, margins=(8, 4, 8, 4), grow=self.search)
        lay_column(self, bar, self.page, grow=self.page)
        self._connect()

    def _connect(self) -> None:
        self.source.activated.connect(self._on_source_activated)
        self.search.textChanged.connect(self._on_search_changed)
        self.search.returnPressed.connect(self._on_return_pressed)
        self.follow.toggled.connect(self._on_follow_toggled)
        self._log.appended.connect(self._on_appended)
        self._log.model.modelReset.connect(self._on_appended)
        self.lines.verticalScrollBar().actionTriggered.connect(self._on_scrolled)
        for keys, slot in (("Ctrl+F", self.search.setFocus), ("Ctrl+C", self._copy)):
            QShortcut(keys, self, slot, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)

    def set_sources(self, logs: Sequence[Path]) -> None:
        """Which logs there are. The chosen one stays chosen where it is still there."""
        if [self.source.itemData(row) for row in range(self.source.count())] == list(logs):
            return
        chosen = self.source.currentData()
        self.source.clear()
        for path in logs:
            self.source.addItem(_label(path, self._names), path)
        self.source.setCurrentIndex(logs.index(chosen) if chosen in logs else 0 if logs else -1)
        self.log_chosen.emit(self.source.currentData())

    def show_names(self, names: RankNames) -> None:
        """Names the processes by their devices."""
        self._names = names
        for row in range(self.source.count()):
            self.source.setItemText(row, _label(self.source.itemData(row), names))

    def choose(self, name: str) -> None:
        """Shows the log of this file name, for example "rank1.log"."""
        for row in range(self.source.count()):
            if self.source.itemData(row).name == name:
                self.source.setCurrentIndex(row)
                self.log_chosen.emit(self.source.currentData())

    def find_next(self, backwards: bool = False) -> bool:
        """Goes to the next line that holds what is searched for; False if none does."""
        text = self.search.text()
        current = self.lines.currentIndex().row()
        start = max(0, current - 1 if backwards else current + 1)
        row = self._log.model.find(text, start, backwards)
        if row < 0:
            return False
        self.follow.setChecked(False)
        index = self._log.model.index(row)
        self.lines.setCurrentIndex(index)
        self.lines.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)
        return True

    def _on_source_activated(self, _row: int) -> None:
        self.follow.setChecked(True)
        self.log_chosen.emit(self.source.currentData())

    def _on_search_changed(self, text: str) -> None:
        many = self._log.model.count(text)
        self.found.setText(f"{many:,} {'line' if many == 1 else 'lines'}" if text else "")

    def _on_return_pressed(self) -> None:
        self.find_next(bool(QGuiApplication.keyboardModifiers() & Qt.KeyboardModifier.ShiftModifier))

    def _on_follow_toggled(self, on: bool) -> None:
        if on:
            self.lines.scrollToBottom()

    def _on_appended(self, *_: object) -> None:
        self.page.set_empty(self._log.model.rowCount() == 0)
        if self.follow.isChecked():
            self.lines.scrollToBottom()

    def _on_scrolled(self, _action: int) -> None:
        bar = self.lines.verticalScrollBar()
        self.follow.setChecked(bar.sliderPosition() >= bar.maximum())

    def _copy(self) -> None:
        rows = sorted(index.row() for index in self.lines.selectedIndexes())
        QGuiApplication.clipboard().setText("\n".join(self._log.model.line(row) for row in rows))


def _label(log: Path, names: RankNames) -> str:
    rank = log.stem.removeprefix("rank")
    return names.with_rank(int(rank)) if rank.isdecimal() else "run host"
