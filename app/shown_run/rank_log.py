"""The log of a run: its events and what its processes print, merged by time and bounded."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Signal

from app.threads.bridge import Feed, Send
from core.held_files import open_binary
from core.metrics.event_text import Level
from core.run_folder.log_times import read_log_times

HOST: Final = -1
MAX_LINES: Final = 20_000
MAX_LINE_CHARACTERS: Final = 4_000
START_BYTES: Final = 4 << 20
READ_BYTES: Final = 1 << 18
POLL_S: Final = 0.5
SENT_AT_ONCE: Final = 2_000
# Events come at once and printed lines are polled: lines within this time of each other stay in the order they came.
LATE_S: Final = 2.0
_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|[\x00-\x08\x0b\x0c\x0e-\x1a]"
)
_SUSPECT: Final = re.compile(r"rror|RROR|xcept|raceback|FATAL|CRITICAL|arn|ARN")
_ERROR: Final = re.compile(
    r"^Traceback \(most recent|\b\w*(?:Error|Exception)\b:|\b(?:ERROR|FATAL|CRITICAL)\b|^\s*(?:error|Error)\b:"
)
_WARNING: Final = re.compile(r"\b\w*Warning\b:|\b(?:WARNING|WARN)\b|^\s*(?:warning|Warning)\b:")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the log.

    Attributes:
        ts: When it was written, as Unix seconds; None where that is not known.
        rank: `HOST` for the run's host.
        level: Decides its colour.
        order: Its place in time among lines of other files; that of the file's last change where `ts` is None.
    """

    text: str
    ts: float | None = None
    rank: int = HOST
    level: Level = "info"
    order: float = 0.0


def output_level(text: str) -> Level:
    """The level of a printed line: that of its first word or of the exception that it names."""
    # 20,000 lines are looked at when a log is opened.
    if _SUSPECT.search(text) is None:
        return "info"
    if _ERROR.search(text):
        return "error"
    return "warning" if _WARNING.search(text) else "info"


def printed(line: str) -> str:
    """Return a line as a terminal would leave it, without overwritten text and colour codes."""
    line = line.removesuffix("\r")
    shown = _ESCAPES.sub("", line.rsplit("\r", 1)[-1]).expandtabs(4)
    return shown if len(shown) <= MAX_LINE_CHARACTERS else shown[:MAX_LINE_CHARACTERS] + " …"


@dataclass(slots=True)
class LogTail:
    """Reads new text of a log, which may not exist yet; of a long one only the last megabytes.

    Attributes:
        start_bytes: Size of the end that is read first.
        skipped_bytes: Size of the beginning that was left out.
        ends: Byte at which each line ends that was read last.
    """

    path: Path
    start_bytes: int = START_BYTES
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
                    self._offset = self.skipped_bytes = max(0, size - self.start_bytes)
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
    """The part of a run's log that is shown: one file, or all of them with the run's events."""

    logs: tuple[Path, ...]

    @property
    def is_all(self) -> bool:
        return len(self.logs) > 1

    @property
    def rank(self) -> int | None:
        """The rank whose output it is; None for the host and for all."""
        rank = HOST if self.is_all else _rank_of(self.logs[0])
        return None if rank == HOST else rank


def _rank_of(log: Path) -> int:
    rank = log.stem.removeprefix("rank")
    return int(rank) if rank.isdecimal() else HOST


class RankLog(Feed):
    """Follows the chosen log files.

    Signals:
        appended: A list of `LogLine`s that follow those before.
        replaced: `lines` are others.
    """

    appended = Signal(object)
    replaced = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.choice: LogChoice | None = None
        self._printed: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._events: deque[LogLine] = deque(maxlen=MAX_LINES)
        self._newest = 0.0

    def lines(self) -> list[LogLine]:
        events = self._events if self.choice is not None and self.choice.is_all else ()
        return sorted((*events, *self._printed), key=lambda line: line.order)[-MAX_LINES:]

    def open(self, choice: LogChoice) -> None:
        self.close(wait=False)
        self.choice = choice
        # The host's own log repeats the run's events in its words, so it is shown alone.
        logs = [log for log in choice.logs if not choice.is_all or _rank_of(log) != HOST]

        def work(stopping: threading.Event, send: Send) -> None:
            def deliver(lines: Sequence[LogLine]) -> None:
                for first in range(0, len(lines), SENT_AT_ONCE):
                    while not stopping.is_set() and not send(list(lines[first : first + SENT_AT_ONCE])):
                        stopping.wait(0.01)

            # Several files share the budget of one: their lines share one list.
            start_bytes = START_BYTES // max(1, len(logs))
            tails = [LogTail(path, start_bytes) for path in logs]
            deliver(_first_lines(tails, start_bytes, stopping)[-MAX_LINES:])
            while not stopping.is_set():
                lines = _new_lines(tails)
                deliver(lines)
                if not lines:
                    stopping.wait(POLL_S)

        self._start("log", work)
        self._replace()

    def set_events(self, events: Sequence[LogLine]) -> None:
        """Replaces the run's events, oldest first."""
        self._events = deque(events, maxlen=MAX_LINES)
        self._replace()

    def add_events(self, events: Sequence[LogLine]) -> None:
        self._events.extend(events)
        if events and self.choice is not None and self.choice.is_all:
            self._add(events)

    def close(self, *, wait: bool = True) -> None:
        super().close(wait=wait)
        self.choice = None
        self._printed.clear()
        self._replace()

    def _replace(self) -> None:
        self._newest = max((line.order for line in self.lines()[-1:]), default=0.0)
        self.replaced.emit()

    def _add(self, lines: Sequence[LogLine]) -> None:
        if lines[0].order < self._newest - LATE_S:
            self._replace()
        else:
            self._newest = max(self._newest, lines[-1].order)
            self.appended.emit(list(lines))

    def _on_item(self, item: object) -> None:
        if isinstance(item, list):
            self._printed.extend(item)
            self._add(item)


def _first_lines(tails: Sequence[LogTail], start_bytes: int, stopping: threading.Event) -> list[LogLine]:
    """Read the present lines, with the times that the host kept; others go where their file ends."""
    made: list[LogLine] = []
    for tail in tails:
        times = read_log_times(tail.path)
        untimed = times.times[0] if times.times else _changed(tail.path)
        held: list[str] = []
        ends: list[int] = []
        for _ in range(0, start_bytes, READ_BYTES):
            lines = tail.read()
            if not lines or stopping.is_set():
                break
            held, ends = held + lines, ends + tail.ends
        for text, end in zip(held[-MAX_LINES:], ends[-MAX_LINES:], strict=True):
            ts = times.of(end)
            made.append(_line(tail.path, text, ts, untimed if ts is None else ts))
    return sorted(made, key=lambda line: line.order)


def _new_lines(tails: Sequence[LogTail]) -> list[LogLine]:
    now = time.time()
    return [_line(tail.path, text, now, now) for tail in tails for text in tail.read()]


def _line(log: Path, text: str, ts: float | None, order: float) -> LogLine:
    return LogLine(text, ts, _rank_of(log), output_level(text), order)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
