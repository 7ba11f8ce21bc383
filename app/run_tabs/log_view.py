"""Log of the run: its events and the output of its devices, followed and searched."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QShowEvent, QTextCharFormat, QTextCursor, QTextDocument
from PySide6.QtWidgets import QPlainTextEdit, QToolButton, QWidget

from app.shown_run.rank_log import HOST, MAX_LINES, LogChoice, LogLine, RankLog
from app.style.icons import icon
from app.style.palette import rank_colour
from app.style.tones import muted, tone
from app.widgets.build import code_box, icon_button, lay_column, lay_row, muted_label, named, search_line
from app.widgets.empty_note import WithNote
from app.widgets.steady import ComboBox
from core.formatting import clock
from core.machine.devices.names import RankNames
from core.metrics.event_text import Event, Level, event_level, event_text, is_logged

NOTHING: Final = "What the run does, step by step, and what its devices print appears here."
SILENT: Final = "This device has printed nothing."
EVENTS_KEPT: Final = 4_000


class LogView(QWidget):
    """The log of the run, or of a part of it; the newest line stays in sight until one scrolls up.

    Signals:
        log_chosen: The `LogChoice` to show; None when there is no run.
    """

    log_chosen = Signal(object)

    def __init__(self, log: RankLog) -> None:
        super().__init__()
        self._log = log
        self._names = RankNames()
        self._logs: tuple[Path, ...] = ()
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        # A hidden tab makes no text: a run that is opened has a thousand events, and its charts come first.
        self._is_stale = True
        self.source = named(ComboBox(), "Log source", "Show everything, the host's log, or what one device prints")
        self.source.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToContents)
        self.search = search_line("Search (Enter: next, Shift+Enter: previous)", "Search the log")
        self.found = muted_label(wraps=False)
        self.follow = QToolButton()
        self.follow.setText("Follo&w")
        self.follow.setIcon(icon("follow"))
        self.follow.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.follow.setCheckable(True)
        self.follow.setChecked(True)
        self.follow.setToolTip("Follow the newest line")
        self.copy = icon_button("copy", "Copy the selected text, or all", self._copy, "Copy the log")
        self.lines = code_box("Log", framed=False)
        self.lines.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.lines.setMaximumBlockCount(MAX_LINES)
        self.page = WithNote(self.lines, NOTHING)
        parts = (self.source, self.search, self.found, self.copy, self.follow)
        bar = lay_row(None, *parts, spacing=8, margins=(8, 4, 8, 4), grow=self.search)
        lay_column(self, bar, self.page, grow=self.page)
        self.source.activated.connect(self._on_source_activated)
        self.search.textChanged.connect(self._on_search_changed)
        self.search.returnPressed.connect(self._on_return_pressed)
        self.follow.toggled.connect(self._scroll_down)
        log.appended.connect(self._on_appended)
        log.replaced.connect(self._show_all)
        self.lines.verticalScrollBar().actionTriggered.connect(self._on_scrolled)

    def set_sources(self, logs: Sequence[Path]) -> None:
        """Offers these logs, that of the host among them; the chosen one stays chosen where it is still there."""
        if tuple(logs) == self._logs:
            return
        chosen = self._chosen()
        self._logs = tuple(logs)
        choices = _choices(self._logs)
        self.source.clear()
        for choice in choices:
            self.source.addItem("", choice)
        self._name_sources()
        keeps = chosen is not None and not chosen.is_all and chosen in choices
        self.source.setCurrentIndex(choices.index(chosen) if keeps and chosen is not None else 0 if choices else -1)
        self.log_chosen.emit(self._chosen())

    def show_names(self, names: RankNames) -> None:
        if names != self._names:
            self._names = names
            self._name_sources()
            self._show_events()

    def clear_events(self) -> None:
        """Forgets the events: another run is shown, or the same from its beginning."""
        self._events.clear()
        self._show_events()

    def add_events(self, events: Sequence[Event]) -> None:
        """Shows new events of metrics.jsonl, oldest first."""
        new = [event for event in events if is_logged(event)]
        self._events.extend(new)
        if self._is_stale or not self.isVisible():
            self._is_stale = True
        else:
            self._log.add_events(self._lines_of(new))

    def choose(self, name: str) -> None:
        """Shows the log of this file name, for example "rank1.log"."""
        for row in range(self.source.count()):
            choice = self.source.itemData(row)
            if [path.name for path in choice.logs] == [name]:
                self.source.setCurrentIndex(row)
                self.log_chosen.emit(choice)

    def _chosen(self) -> LogChoice | None:
        choice = self.source.currentData()
        return choice if isinstance(choice, LogChoice) else None

    def _name_sources(self) -> None:
        choices = [self.source.itemData(row) for row in range(self.source.count())]
        devices = [self._names.full(choice.rank) for choice in choices if choice.rank is not None]
        for row, choice in enumerate(choices):
            text, tip = "Host", "host.log, as the run's host wrote it"
            if choice.is_all:
                text, tip = "All", "The run's events and what every device prints, by time"
            elif choice.rank is not None:
                text = self._names.full(choice.rank)
                tip = f"{self._names.with_rank(choice.rank)}: {choice.logs[0].name}"
                if devices.count(text) > 1:
                    text = self._names.with_rank(choice.rank)
            self.source.setItemText(row, text)
            self.source.setItemData(row, tip, Qt.ItemDataRole.ToolTipRole)

    # --- text --------------------------------------------------------------------------------------------

    def _show_events(self) -> None:
        if self.isVisible():
            self._is_stale = False
            self._log.set_events(self._lines_of(self._events))
        else:
            self._is_stale = True

    def _show_all(self) -> None:
        if not self.isVisible():
            self._is_stale = True
            return
        self.lines.clear()
        self._write(self._log.lines())
        choice = self._chosen()
        is_device = choice is not None and choice.rank is not None
        self.page.set_empty(self.lines.document().isEmpty(), SILENT if is_device else NOTHING)

    def _on_appended(self, lines: Sequence[LogLine]) -> None:
        if self._is_stale or not self.isVisible():
            self._is_stale = True
        else:
            self.page.set_empty(False)
            self._write(lines)

    def _write(self, lines: Sequence[LogLine]) -> None:
        palette, is_all = self.palette(), self._log.choice is not None and self._log.choice.is_all
        quiet, formats = _coloured(muted(palette)), {level: _coloured(tone(palette, level)) for level in _COLOURED}
        sources = {line.rank for line in lines} if is_all else ()
        names = {rank: "Host" if rank == HOST else self._names.short(rank) for rank in sources}
        signs = {rank: quiet if rank == HOST else _coloured(rank_colour(rank, palette)) for rank in sources}
        width = max(len("Host"), *(len(self._names.short(rank)) for rank in range(len(self._names.devices))), 0)
        cursor, plain = QTextCursor(self.lines.document()), QTextCharFormat()
        cursor.movePosition(QTextCursor.MoveOperation.End)
        is_first = self.lines.document().isEmpty()
        cursor.beginEditBlock()
        for line in lines:
            if not is_first:
                cursor.insertBlock()
            is_first = False
            if is_all:
                cursor.insertText(f"{'' if line.ts is None else clock(line.ts):8}  ", quiet)
                cursor.insertText(f"{names[line.rank]:{width}}  ", signs[line.rank])
            cursor.insertText(line.text, formats.get(line.level, plain))
        cursor.endEditBlock()
        self._scroll_down(self.follow.isChecked())

    def _lines_of(self, events: Iterable[Event]) -> list[LogLine]:
        lines = (_event_line(event, self._names) for event in events)
        return [line for line in lines if line.text]

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._is_stale:
            self._show_events()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "page"):
            self._show_all()

    # --- search, following and copying ---------------------------------------------------------------------

    def find_next(self, backwards: bool = False) -> bool:
        """Goes to the next place of the text that is searched for, round and round; False if there is none."""
        text, flags = self.search.text(), QTextDocument.FindFlag(0)
        if text != text.lower():
            flags |= QTextDocument.FindFlag.FindCaseSensitively
        if backwards:
            flags |= QTextDocument.FindFlag.FindBackward
        if not text:
            return False
        before = self.lines.textCursor()
        if not self.lines.find(text, flags):
            self.lines.moveCursor(QTextCursor.MoveOperation.End if backwards else QTextCursor.MoveOperation.Start)
            if not self.lines.find(text, flags):
                self.lines.setTextCursor(before)
                return False
        self.follow.setChecked(False)
        self.lines.centerCursor()
        return True

    def _on_source_activated(self, _row: int) -> None:
        self.follow.setChecked(True)
        self.log_chosen.emit(self._chosen())

    def _on_search_changed(self, text: str) -> None:
        shown = self.lines.toPlainText()
        many = sum(text in line for line in (shown.lower() if text == text.lower() else shown).split("\n"))
        self.found.setText(f"{many:,} {'line' if many == 1 else 'lines'}" if text else "")

    def _on_return_pressed(self) -> None:
        self.find_next(bool(QGuiApplication.keyboardModifiers() & Qt.KeyboardModifier.ShiftModifier))

    def _scroll_down(self, is_following: bool) -> None:
        if is_following:
            bar = self.lines.verticalScrollBar()
            bar.setValue(bar.maximum())

    def _on_scrolled(self, _action: int) -> None:
        bar = self.lines.verticalScrollBar()
        self.follow.setChecked(bar.sliderPosition() >= bar.maximum())

    def _copy(self) -> None:
        chosen = self.lines.textCursor().selection().toPlainText()
        QGuiApplication.clipboard().setText(chosen or self.lines.toPlainText())


_COLOURED: Final[tuple[Level, ...]] = ("warning", "error")


def _coloured(colour: QColor) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(colour)
    return made


def _choices(logs: Sequence[Path]) -> list[LogChoice]:
    if not logs:
        return []
    single = sorted((LogChoice((path,)) for path in logs), key=lambda choice: choice.rank is not None)
    return [*([LogChoice(tuple(logs))] if len(logs) > 1 else []), *single]


def _event_line(event: Event, names: RankNames) -> LogLine:
    ts = event.get("ts")
    at = float(ts) if isinstance(ts, int | float) else None
    return LogLine(event_text(event, names), at, HOST, event_level(event), at or 0.0)
