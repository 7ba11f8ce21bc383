"""The output of a process as lines that follow its log file and can be searched."""

from __future__ import annotations

import re
import threading
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.bridge import Feed, Send

MAX_LINES: Final = 20_000
MAX_LINE_CHARACTERS: Final = 4_000
START_BYTES: Final = 4 << 20
READ_BYTES: Final = 1 << 18
POLL_S: Final = 0.25
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
        skipped_bytes: How much of its beginning was left out.
    """

    path: Path
    skipped_bytes: int = 0
    _offset: int | None = None
    _rest: bytes = field(default=b"")

    def read(self) -> list[str]:
        """The lines that are complete since the last call; [] when there is nothing new.

        Text without a line end (a progress bar, a last word before a crash) comes with the line's end.
        """
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                if self._offset is None or size < self._offset:
                    self._offset = self.skipped_bytes = max(0, size - START_BYTES)
                    self._rest = b""
                file.seek(self._offset)
                data = file.read(READ_BYTES)
        except OSError:
            return []
        at_cut = self._offset == self.skipped_bytes > 0
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > READ_BYTES:
            lines, self._rest = [*lines, self._rest], b""
        if at_cut and lines:
            lines = lines[1:]  # it began in the middle
        return [printed(line.decode("utf-8", errors="replace")) for line in lines]


class RankLogModel(QAbstractListModel):
    """The last `MAX_LINES` lines of a log."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lines: deque[str] = deque()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._lines)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role == Qt.ItemDataRole.DisplayRole and index.isValid() and index.row() < len(self._lines):
            return self._lines[index.row()]
        return None

    def line(self, row: int) -> str:
        """The text of a row."""
        return self._lines[row]

    def append(self, lines: list[str]) -> None:
        """Adds lines; the oldest ones go when there are too many."""
        lines = lines[-MAX_LINES:]
        if not lines:
            return
        over = len(self._lines) + len(lines) - MAX_LINES
        if over > 0:
            self.beginRemoveRows(QModelIndex(), 0, over - 1)
            for _ in range(over):
                self._lines.popleft()
            self.endRemoveRows()
        first = len(self._lines)
        self.beginInsertRows(QModelIndex(), first, first + len(lines) - 1)
        self._lines.extend(lines)
        self.endInsertRows()

    def clear(self) -> None:
        """Forgets every line."""
        self.beginResetModel()
        self._lines.clear()
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
            return next((row for row in rows if text in (lines[row].lower() if fold else lines[row])), -1)
        later = enumerate(islice(lines, start, None), start)
        earlier = enumerate(islice(lines, start))
        for found in (later, earlier):
            for row, line in found:
                if text in (line.lower() if fold else line):
                    return row
        return -1

    def count(self, text: str) -> int:
        """How many lines hold `text`."""
        fold = text == text.lower()
        return sum(text in (line.lower() if fold else line) for line in self._lines) if text else 0


class RankLog(Feed):
    """Keeps a `RankLogModel` current with one log file.

    Signals:
        appended: How many lines came.
    """

    appended = Signal(int)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model = RankLogModel(self)
        self.path: Path | None = None

    def open(self, path: Path) -> None:
        """Follows a file from now on; it may not exist yet."""
        self.close(wait=False)
        self.path = path
        tail = LogTail(path)

        def work(stopping: threading.Event, send: Send) -> None:
            while not stopping.is_set():
                lines = tail.read()
                while lines and not stopping.is_set() and not send(lines):
                    stopping.wait(0.01)
                if not lines:
                    stopping.wait(POLL_S)

        self._start("log", work)

    def close(self, *, wait: bool = True) -> None:
        """Ends following and forgets the lines."""
        super().close(wait=wait)
        self.path = None
        self.model.clear()

    def _on_item(self, item: object) -> None:
        if isinstance(item, list):
            self.model.append(item)
            self.appended.emit(len(item))
