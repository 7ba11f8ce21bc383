"""Dates, times and what else loggers write before a message: taken out, so that none of it is read as a number. Pure.

``11/23/2026 12:00:01 - INFO - __main__ - step 5`` and ``[INFO|trainer.py:88] 2026-11-23 12:00:01,123 >> step 5`` both
are ``step 5``.
"""

from __future__ import annotations

import re
from typing import Final

_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_CLOCK: Final = r"\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?[AP]M\b)?(?:\s?(?:Z|UTC|GMT|[-+]\d\d:?\d\d)\b)?"
_STAMP: Final = (
    r"(?<![\w.])(?:"
    rf"\d{{4}}([-/.])\d{{1,2}}\1\d{{1,2}}(?:[T _]+{_CLOCK})?"  # 2026-11-23T12:00:01.123Z
    rf"|\d{{1,2}}([-/.])\d{{1,2}}\2(?:\d{{4}}|\d\d)(?:,?[ _]+{_CLOCK})?"  # 11/23/2026, 23.11.26
    rf"|\d{{1,2}}[-/]\d{{1,2}},? {_CLOCK}"  # 11/23 12:00:01
    rf"|\d{{1,2}}[- ]{_MONTH}[- ]\d{{2,4}}(?:,? {_CLOCK})?"  # 23-Nov-2026 12:00:01, and syslog's
    rf"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?{_MONTH} +\d{{1,2}}(?:,? \d{{4}})?,? {_CLOCK}(?: \d{{4}})?"
    r"|20\d{6}[-_T]?\d{4,6}"  # 20261123_120001
    rf"|(?:\d+ days?, )?{_CLOCK}"
    r")(?![\w])"
)
_FILE: Final = r"[\w/\\.<>-]{1,200}\.(?:py|cpp|cc|cu|json|txt|pt|bin|log)(?::\d+)?(?::[\w<>]+)?"
_LEVEL: Final = r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|TRACE|debug|info|warning)\b"
_NOISE: Final = re.compile(rf"{_STAMP}|\[(?:rank|gpu|cuda|default)?[ _:]?\d+\]\s*:|\w+://\S+|\b{_FILE}", re.IGNORECASE)
_SEPARATOR: Final = r"[\s\-–|:,>\[\]()]*"
_MODULE: Final = r"(?!(?:train|test|valid?|eval|dev)\w*\b)[A-Za-z_][\w.]*(?::[\w.<>]+)*(?::\d+)?"
_BEFORE: Final = re.compile(
    rf"^{_SEPARATOR}(?:[IWEF]\d{{4}} {_CLOCK} +\d+ {_FILE}\]"  # glog
    rf"|(?:\[[\w-]+\]{_SEPARATOR})??(?:(?:{_STAMP}|{_FILE}){_SEPARATOR})*"
    rf"(?:{_MODULE}\s+[-|]\s+)?{_LEVEL}(?:{_SEPARATOR}(?:{_STAMP}|{_FILE}))*"
    rf"(?:(?:\s+[-|]\s+|:(?=\S)|\]\s+){_MODULE}(?=\s+(?:-|\||>>)\s|:\S))?)"
)
"""A logger's words: dates, a level, a file or module, in the orders that are usual."""


def without_stamps(text: str) -> str:
    """The message of a line: no logger's words before it, and no date, time, file or address in it."""
    before = _BEFORE.match(text)
    if before is not None:
        text = text[before.end() :].lstrip(" -–|:,>])")
    return _NOISE.sub(" | ", text).lstrip(" |>]:")
