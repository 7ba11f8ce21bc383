"""The log of a run: its host's events and what its ranks print, merged by time, bounded and searchable."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.shown_run.log_line import HOST, LogLine, host_lines, rank_line
from app.threads.bridge import Feed, Send
from core.formatting import clock
from core.held_files import open_binary
from core.machine.devices.names import RankNames
from core.run_folder.log_times import read_log_times

MAX_LINES: Final = 20_000
MAX_LINE_CHARACTERS: Final = 4_000
START_BYTES: Final = 4 << 20
READ_BYTES: Final = 1 << 18
POLL_S: Final = 0.5
SENT_AT_ONCE: Final = 2_000
# Late lines up to this number are inserted one by one; more of them reset the list, which drops the selection.
INSERTED_SINGLY: Final = 64
LEVEL_ROLE: Final = Qt.ItemDataRole.UserRole
PREFIX_ROLE: Final = Qt.ItemDataRole.UserRole + 1
_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|[\x00-\x08\x0b\x0c\x0e-\x1a]"
)
Index = QModelIndex | QPersistentModelIndex


def printed(line: str) -> str:
    """A line as a terminal would leave it: what a carriage return wrote over is gone, colour codes too."""
    line = line.removesuffix("\r")
    shown = _ESCAPES.sub("", line.rsplit("\r", 1)[-1]).expandtabs(4)
    return shown if len(shown) <= MAX_LINE_CHARACTERS else shown[:MAX_LINE_CHARACTERS] + " …"


@dataclass(slots=True)
class LogTail:
    """Reads new text of a log; of a long one only the last megabytes.

    Attributes:
        path: The file; it may not exist yet.
        start_bytes: How much of its end is read first; None: `START_BYTES`.
        skipped_bytes: How much of its beginning was left out.
        ends: Where in the file the lines end that were read last.
    """

    path: Path
    start_bytes: int | None = None
    skipped_bytes: int = 0
    ends: list[int] = field(default_factory=list)
    _offset: int | None = None
    _rest: bytes = field(default=b"")

    def read(self) -> list[str]:
        """The lines that are complete since the last call; [] when there is nothing new.

        Text without a line end (a progress bar, a last word before a crash) comes with the line's end.
        """
        try:
            with open_binary(self.path, timeout_s=0) as file:
                size = file.seek(0, 2)
                if self._offset is None or size < self._offset:
                    self._offset = self.skipped_bytes = max(0, size - (self.start_bytes or START_BYTES))
                    self._rest = b""
                file.seek(self._offset)
                data = file.read(READ_BYTES)
        except OSError:
            return []
        start = self._offset - len(self._rest)
        at_cut = self._offset == self.skipped_bytes > 0
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > READ_BYTES:
            lines, self._rest = [*lines, self._rest], b""
        self.ends = list(accumulate((len(line) + 1 for line in lines), initial=start))[1:]
        if at_cut and lines:  # it began in the middle
            lines, self.ends = lines[1:], self.ends[1:]
        return [printed(line.decode("utf-8", errors="replace")) for line in lines]


@dataclass(frozen=True, slots=True)
class LogChoice:
    """Which part of a run's log is shown.

    Attributes:
        logs: Files to follow: "rank0.log", "host.log".
    """

    logs: tuple[Path, ...]

    @property
    def has_host(self) -> bool:
        """Whether the host's events belong to it."""
        return any(_rank_of(path) == HOST for path in self.logs)

    @property
    def is_all(self) -> bool:
        """Whether the lines of several sources stand side by side."""
        return len(self.logs) > 1

    @property
    def rank(self) -> int | None:
        """The rank whose output it is; None for the host and for several sources."""
        rank = _rank_of(self.logs[0]) if len(self.logs) == 1 else HOST
        return None if rank == HOST else rank


def _rank_of(log: Path) -> int:
    rank = log.stem.removeprefix("rank")
    return int(rank) if rank.isdecimal() else HOST


class RankLogModel(QAbstractListModel):
    """The last `MAX_LINES` lines of a log, by time."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lines: deque[LogLine] = deque()
        self._names = RankNames()
        self._with_time = self._with_source = False
        self._source_width = 0
        self.longest = 0

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._lines)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._lines):
            return None
        line = self._lines[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self._prefix(line) + line.text
        if role == PREFIX_ROLE:
            return self._prefix(line)
        return line.level if role == LEVEL_ROLE else None

    def line(self, row: int) -> str:
        """The text of a row, without its time and source."""
        return self._lines[row].text

    def shown(self, row: int) -> str:
        """The text of a row as the list shows it."""
        line = self._lines[row]
        return self._prefix(line) + line.text

    def show_columns(self, *, time: bool, source: bool, names: RankNames) -> None:
        self.beginResetModel()
        self._with_time, self._with_source, self._names = time, source, names
        self._source_width = max(len("Host"), *(len(names.short(rank)) for rank in range(len(names.devices))), 0)
        self.endResetModel()

    def append(self, lines: Sequence[LogLine]) -> None:
        """Adds lines, each at its place in time; the oldest ones go when there are too many."""
        lines = list(lines[-MAX_LINES:])
        if not lines:
            return
        self.longest = max(self.longest, *(len(line.text) for line in lines), 0)
        if self._lines and lines[0].order < self._lines[-1].order:
            self._insert(lines)
            return
        self._make_room(len(lines))
        first = len(self._lines)
        self.beginInsertRows(QModelIndex(), first, first + len(lines) - 1)
        self._lines.extend(lines)
        self.endInsertRows()

    def _make_room(self, many: int) -> None:
        over = len(self._lines) + many - MAX_LINES
        if over > 0:
            self.beginRemoveRows(QModelIndex(), 0, over - 1)
            for _ in range(over):
                self._lines.popleft()
            self.endRemoveRows()

    def _insert(self, lines: list[LogLine]) -> None:
        if len(lines) > INSERTED_SINGLY:
            self.beginResetModel()
            merged = sorted((*self._lines, *lines), key=lambda line: line.order)
            self._lines = deque(merged[-MAX_LINES:])
            self.endResetModel()
            return
        self._make_room(len(lines))
        for line in lines:
            row = len(self._lines)
            while row and self._lines[row - 1].order > line.order:
                row -= 1
            self.beginInsertRows(QModelIndex(), row, row)
            self._lines.insert(row, line)
            self.endInsertRows()

    def clear(self) -> None:
        self.beginResetModel()
        self._lines.clear()
        self.longest = 0
        self.endResetModel()

    def find(self, text: str, from_row: int = 0, backwards: bool = False) -> int:
        """The next row that holds `text` (case does not matter unless it has capitals), going round; -1 if none."""
        count = len(self._lines)
        if not text or not count:
            return -1
        fold = text == text.lower()
        lines = self._lines
        start = from_row % count
        if backwards:
            rows = [*range(start, -1, -1), *range(count - 1, start, -1)]
            return next((row for row in rows if _holds(lines[row], text, fold)), -1)
        later = enumerate(islice(lines, start, None), start)
        earlier = enumerate(islice(lines, start))
        for found in (later, earlier):
            for row, line in found:
                if _holds(line, text, fold):
                    return row
        return -1

    def count(self, text: str) -> int:
        fold = text == text.lower()
        return sum(_holds(line, text, fold) for line in self._lines) if text else 0

    def _prefix(self, line: LogLine) -> str:
        when = f"{clock(line.ts) if line.ts is not None else '':8}  " if self._with_time else ""
        if not self._with_source:
            return when
        source = "Host" if line.rank == HOST else self._names.short(line.rank)
        return f"{when}{source:{self._source_width}}  "


def _holds(line: LogLine, text: str, fold: bool) -> bool:
    return text in (line.text.lower() if fold else line.text)


class RankLog(Feed):
    """Keeps a `RankLogModel` current with the log files that are chosen and with the host's events.

    Signals:
        appended: How many lines came.
    """

    appended = Signal(int)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model = RankLogModel(self)
        self.choice: LogChoice | None = None
        self._names = RankNames()
        self._events: deque[LogLine] = deque(maxlen=MAX_LINES)

    def open(self, choice: LogChoice) -> None:
        """Follows these files from now on; they may not exist yet."""
        self.close(wait=False)
        self.choice = choice
        names = self._names
        self.model.show_columns(time=choice.has_host, source=choice.is_all, names=names)
        if choice.has_host:
            self.model.append(list(self._events))

        def work(stopping: threading.Event, send: Send) -> None:
            def deliver(lines: Sequence[LogLine]) -> None:
                for first in range(0, len(lines), SENT_AT_ONCE):
                    while not stopping.is_set() and not send(list(lines[first : first + SENT_AT_ONCE])):
                        stopping.wait(0.01)

            # Several files share the budget of one: their lines share one list.
            start_bytes = START_BYTES // len(choice.logs)
            tails = [LogTail(path, start_bytes) for path in choice.logs]
            deliver(_first_lines(tails, start_bytes, names, stopping)[-MAX_LINES:])
            while not stopping.is_set():
                lines = _new_lines(tails, names)
                deliver(lines)
                if not lines:
                    stopping.wait(POLL_S)

        self._start("log", work)

    def show_names(self, names: RankNames, events: Sequence[LogLine]) -> None:
        """Names the ranks by their devices; `events` are the host's, with these names."""
        if names == self._names:
            return
        self._names = names
        self._events = deque(events, maxlen=MAX_LINES)
        if self.choice is not None:
            self.open(self.choice)

    def set_events(self, events: Sequence[LogLine]) -> None:
        """Takes over the host's events from the first one, as of another run."""
        self._events.clear()
        if self.choice is not None and self.choice.has_host and self.model.rowCount():
            self.open(self.choice)
        self.add_events(events)

    def add_events(self, events: Sequence[LogLine]) -> None:
        """Adds events that the host reported, oldest first."""
        self._events.extend(events)
        if events and self.choice is not None and self.choice.has_host:
            self.model.append(events)
            self.appended.emit(len(events))

    def close(self, *, wait: bool = True) -> None:
        """Ends following and forgets the lines of the files."""
        super().close(wait=wait)
        self.choice = None
        self.model.clear()

    def _on_item(self, item: object) -> None:
        if isinstance(item, list):
            self.model.append(item)
            self.appended.emit(len(item))


def _first_lines(
    tails: Sequence[LogTail], start_bytes: int, names: RankNames, stopping: threading.Event
) -> list[LogLine]:
    """What the files hold already. Printed lines have the times that the host kept; others go where their file ends."""
    made: list[LogLine] = []
    for tail in tails:
        rank, times = _rank_of(tail.path), read_log_times(tail.path)
        untimed = times.times[0] if times.times else _changed(tail.path)
        held: list[str] = []
        ends: list[int] = []
        for _ in range(0, start_bytes, READ_BYTES):
            lines = tail.read()
            if not lines or stopping.is_set():
                break
            held, ends = held + lines, ends + tail.ends
        held, ends = held[-MAX_LINES:], ends[-MAX_LINES:]
        if rank == HOST:
            made += host_lines(held, names, untimed)
            continue
        for text, end in zip(held, ends, strict=True):
            ts = times.of(end)
            made.append(rank_line(text, rank, untimed if ts is None else ts, ts))
    return sorted(made, key=lambda line: line.order)


def _new_lines(tails: Sequence[LogTail], names: RankNames) -> list[LogLine]:
    made: list[LogLine] = []
    for tail in tails:
        rank, now, lines = _rank_of(tail.path), time.time(), tail.read()
        made += host_lines(lines, names, now) if rank == HOST else [rank_line(line, rank, now, now) for line in lines]
    return sorted(made, key=lambda line: line.order)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
