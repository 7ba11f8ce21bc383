"""Log of the run: its host's events and the output of its devices, which it follows and which can be searched."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication, QPainter, QPalette, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QWidget,
)

from app.run_tabs.event_text import Event, event_level, event_text, is_logged
from app.shown_run.log_line import HOST, Level, LogLine
from app.shown_run.rank_log import LEVEL_ROLE, PREFIX_ROLE, LogChoice, RankLog, RankLogModel
from app.style.icons import icon
from app.style.tones import muted, tone
from app.widgets.build import icon_button, lay_column, lay_row, muted_label, named, search_line
from app.widgets.empty_note import WithNote
from app.widgets.steady import ComboBox
from core.machine.devices.names import RankNames

NOTHING: Final = "What the run does, step by step, and what its devices print appears here."
SILENT: Final = "This device has printed nothing."
EVENTS_KEPT: Final = 4_000
INDENT_PX: Final = 8
Index = QModelIndex | QPersistentModelIndex


class LogLineDelegate(QStyledItemDelegate):
    """Draws time and source of a line muted, and its text in the colour of its level."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        line = QStyleOptionViewItem(option)
        self.initStyleOption(line, index)
        text, line.text = line.text, ""
        line.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, line, painter, line.widget)
        palette, prefix, level = line.palette, str(index.data(PREFIX_ROLE)), str(index.data(LEVEL_ROLE))
        plain = palette.color(QPalette.ColorRole.Text)
        area = line.rect.adjusted(INDENT_PX, 0, 0, 0)
        painter.save()
        painter.setFont(line.font)
        painter.setPen(muted(palette))
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, prefix)
        painter.setPen(plain if level == "info" else tone(palette, level))
        area.adjust(line.fontMetrics.horizontalAdvance(prefix), 0, 0, 0)
        rest = text.removeprefix(prefix)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, rest)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """As wide as the longest line: the list asks for one row only, as all have one size."""
        model = index.model()
        letters = model.longest if isinstance(model, RankLogModel) else 0
        prefix = option.fontMetrics.horizontalAdvance(str(index.data(PREFIX_ROLE)))
        width = prefix + letters * option.fontMetrics.horizontalAdvance("0") + 2 * INDENT_PX
        return QSize(width, option.fontMetrics.lineSpacing() + 2)


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
        self._waiting: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self.source = named(ComboBox(), "Log source", "Show everything, the host's events, or what one device prints")
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
        self.copy = icon_button("copy", "Copy the selected lines, or all (Ctrl+C)", self._copy, "Copy the log")
        self.lines = named(QListView(), "Log")
        self.lines.setModel(log.model)
        self.lines.setUniformItemSizes(True)
        self.lines.setFrameShape(QFrame.Shape.NoFrame)
        self.lines.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.lines.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.lines.setItemDelegate(LogLineDelegate(self.lines))
        self.lines.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.page = WithNote(self.lines, NOTHING)
        parts = (self.source, self.search, self.found, self.copy, self.follow)
        bar = lay_row(None, *parts, spacing=8, margins=(8, 4, 8, 4), grow=self.search)
        lay_column(self, bar, self.page, grow=self.page)
        self._connect()

    def _connect(self) -> None:
        self.source.activated.connect(self._on_source_activated)
        self.search.textChanged.connect(self._on_search_changed)
        self.search.returnPressed.connect(self._on_return_pressed)
        self.follow.toggled.connect(self._on_follow_toggled)
        self._log.appended.connect(self._on_appended)
        self.lines.verticalScrollBar().rangeChanged.connect(self._on_range_changed)
        self._log.model.modelReset.connect(self._on_appended)
        self.lines.verticalScrollBar().actionTriggered.connect(self._on_scrolled)
        QShortcut("Ctrl+C", self, self._copy, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)

    def set_sources(self, logs: Sequence[Path]) -> None:
        """Which logs there are, that of the host among them. What is chosen stays chosen where it is still there."""
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
        self._names = names
        self._name_sources()
        self._log.show_names(names, self._lines_of(self._events))

    def clear_events(self) -> None:
        """Forgets the events: another run is shown, or the same from its beginning."""
        self._events.clear()
        self._waiting.clear()
        self._log.set_events(())

    def add_events(self, events: Sequence[Event]) -> None:
        """Shows events of metrics.jsonl that are new, oldest first; a hidden tab makes their lines once it is seen."""
        self._waiting.extend(event for event in events if is_logged(event))
        if self.isVisible():
            self._take_waiting()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._take_waiting()

    def _take_waiting(self) -> None:
        new = list(self._waiting)
        self._waiting.clear()
        self._events.extend(new)
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
            text, tip = "Host", "host.log and the host's events"
            if choice.is_all:
                text, tip = "All", "The host's events and what every device prints, by time"
            elif choice.rank is not None:
                text = self._names.full(choice.rank)
                tip = f"{self._names.with_rank(choice.rank)}: {choice.logs[0].name}"
                if devices.count(text) > 1:
                    text = self._names.with_rank(choice.rank)
            self.source.setItemText(row, text)
            self.source.setItemData(row, tip, Qt.ItemDataRole.ToolTipRole)

    def _lines_of(self, events: Iterable[Event]) -> list[LogLine]:
        lines = (_event_line(event, self._names) for event in events)
        return [line for line in lines if line.text]

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
        self.log_chosen.emit(self._chosen())

    def _on_search_changed(self, text: str) -> None:
        many = self._log.model.count(text)
        self.found.setText(f"{many:,} {'line' if many == 1 else 'lines'}" if text else "")

    def _on_return_pressed(self) -> None:
        self.find_next(bool(QGuiApplication.keyboardModifiers() & Qt.KeyboardModifier.ShiftModifier))

    def _on_follow_toggled(self, on: bool) -> None:
        if on:
            self.lines.scrollToBottom()

    def _on_appended(self, *_: object) -> None:
        choice = self._chosen()
        is_device = choice is not None and choice.rank is not None
        self.page.set_empty(self._log.model.rowCount() == 0, SILENT if is_device else NOTHING)
        if self.follow.isChecked():
            self.lines.scrollToBottom()

    def _on_range_changed(self, _first: int, last: int) -> None:
        """Lines are laid out later than they come, and in a hidden tab only once it is shown."""
        if self.follow.isChecked():
            self.lines.verticalScrollBar().setValue(last)

    def _on_scrolled(self, _action: int) -> None:
        bar = self.lines.verticalScrollBar()
        self.follow.setChecked(bar.sliderPosition() >= bar.maximum())

    def _copy(self) -> None:
        """Copies the selected lines, or all of them where none is selected."""
        model = self._log.model
        rows = sorted(index.row() for index in self.lines.selectedIndexes()) or range(model.rowCount())
        QGuiApplication.clipboard().setText("\n".join(map(model.shown, rows)))


def _choices(logs: Sequence[Path]) -> list[LogChoice]:
    if not logs:
        return []
    single = sorted((LogChoice((path,)) for path in logs), key=lambda choice: choice.rank is not None)
    return [*([LogChoice(tuple(logs))] if len(logs) > 1 else []), *single]


def _event_line(event: Event, names: RankNames) -> LogLine:
    ts = event.get("ts")
    at = float(ts) if isinstance(ts, int | float) else None
    level = event_level(event)
    shown: Level = "error" if level == "error" else "warning" if level == "warning" else "info"
    return LogLine(event_text(event, names), at, HOST, shown, at or 0.0)
