"""Log lines: what the host and the ranks wrote, with the time, the source and the level that can be read from it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from core.machine.devices.names import RankNames

Level = Literal["info", "warning", "error"]
HOST: Final = -1
_HOST_LINE: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[.,](\d{3}) ([A-Z]+) ([\w.]+): (.*)")
# Lines of host.log, and how they are worded here.
_PLAIN: Final = (
    (re.compile(r"^(.+)\sis\sprocess\s(\d+)\b.*"), r"Process \2 started on \1"),
    (re.compile(r"^(.+)\shas\sended\swith\scode\s(-?\d+)$"), r"The process on \1 exited with code \2"),
    (re.compile(r"^spawning$"), "Starting a process for each device"),
    (re.compile(r"^ending$"), "Waiting for the processes to exit"),
)
_RANK: Final = re.compile(r"\brank\s(\d+)\b")
_REPORTED_AS_EVENT: Final = re.compile(
    r"state:\s.*→\s(?!training)|the\srun\sis\s|a\sstop\sis\sasked|a\scheckpoint\sis\sbegun|rank\s\d+\shas\smade|phase:\s-$"
)
_LEVELS: Final[dict[str, Level]] = {"WARNING": "warning", "ERROR": "error", "CRITICAL": "error"}
_SUSPECT: Final = re.compile(r"rror|RROR|xcept|raceback|FATAL|CRITICAL|arn|ARN")
_ERROR: Final = re.compile(
    r"^Traceback \(most recent|\b\w*(?:Error|Exception)\b:|\b(?:ERROR|FATAL|CRITICAL)\b|^\s*(?:error|Error)\b:"
)
_WARNING: Final = re.compile(r"\b\w*Warning\b:|\b(?:WARNING|WARN)\b|^\s*(?:warning|Warning)\b:")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the log.

    Attributes:
        text: What it says, without its time.
        ts: When it was written, as Unix seconds; None where the file does not say.
        rank: Who wrote it; `HOST` for the run's host.
        level: Decides its colour.
        order: Its place in time among lines of other files; that of the file's last change where `ts` is None.
    """

    text: str
    ts: float | None = None
    rank: int = HOST
    level: Level = "info"
    order: float = 0.0


def rank_line(text: str, rank: int, order: float, ts: float | None = None) -> LogLine:
    """A line that a rank printed."""
    return LogLine(text, ts, rank, output_level(text), order)


def output_level(text: str) -> Level:
    """The level of a printed line: that of its first word or of the exception that it names."""
    if _SUSPECT.search(text) is None:  # 20,000 lines are looked at when a log is opened
        return "info"
    if _ERROR.search(text):
        return "error"
    return "warning" if _WARNING.search(text) else "info"


def host_lines(raw: Iterable[str], names: RankNames, order: float = 0.0) -> list[LogLine]:
    """Lines of host.log as a person reads them; those that events of metrics.jsonl report too are left out.

    Args:
        raw: Whole lines, oldest first.
        names: Names the ranks by their devices.
        order: For lines that begin with no time, such as a traceback's, as long as no line before has one.
    """
    made: list[LogLine] = []
    for line in raw:
        found = _HOST_LINE.match(line)
        if found is None:
            before = made[-1] if made else LogLine("", order=order)
            if line.strip():
                made.append(LogLine(line, None, HOST, before.level, before.order))
            continue
        ts = _seconds(found[1]) + int(found[2]) / 1000
        text = _host_text(found[3], found[4], found[5], names)
        if text:
            made.append(LogLine(text, ts, HOST, _LEVELS.get(found[3], "info"), ts))
    return made


def _host_text(level: str, logger: str, message: str, names: RankNames) -> str:
    if _REPORTED_AS_EVENT.match(message) or (logger == "core.host.lifecycle" and level != "INFO"):
        return ""
    if message.startswith("state: "):
        return "Training started."
    text = _RANK.sub(lambda rank: names.short(int(rank[1])), message.removeprefix("phase: "))
    for pattern, plain in _PLAIN:
        text = pattern.sub(plain, text)
    return text[:1].upper() + text[1:]


@lru_cache(maxsize=4096)
def _seconds(text: str) -> float:
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))
    except (ValueError, OverflowError):
        return 0.0
