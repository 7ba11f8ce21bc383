"""Terminal output: stdout and stderr as UTF-8, and a progress line that overwrites itself.

A closed pipe is not an error: further output is dropped and the command continues.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TextIO

from core.errors import RankdeckError

# Characters of a line of an error; a path and its reason stay far below it.
MAX_SENTENCE: Final = 2000
# C0 but for tab and line feed, DEL, C1, and what turns the direction of text around (Unicode's Trojan Source).
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """`text` with control characters as escapes: a terminal obeys them, and files and ranks may contain any."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`text` as `visible` and on one line, so that nothing looks like a line of ours."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def _shortened(text: str) -> str:
    """A sentence without the middle of a text of thousands of characters that a person gave."""
    return text if len(text) <= MAX_SENTENCE else f"{text[: MAX_SENTENCE // 2]} … {text[-MAX_SENTENCE // 2 :]}"


class Terminal:
    """Prints for one command. All that people read passes through here, and so through `visible`.

    Attributes:
        quiet: True sends everything meant for people to stderr, so that stdout holds only what a program reads.
    """

    def __init__(self) -> None:
        self.quiet = False
        self._line_shown = 0
        self._broken: set[int] = set()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")

    @property
    def _people(self) -> TextIO:
        return sys.stderr if self.quiet else sys.stdout

    @property
    def is_interactive(self) -> bool:
        return self._people.isatty()

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns if self.is_interactive else 0

    def say(self, text: str) -> None:
        self.text(one_line(text))

    def text(self, text: str) -> None:
        self._clear_progress()
        self._write(self._people, visible(text) + "\n")

    def data(self, line: str) -> None:
        self._clear_progress()
        self._write(sys.stdout, line + "\n")

    def json(self, value: Any) -> None:
        self.data(json.dumps(value, ensure_ascii=False))

    def warn(self, text: str) -> None:
        self._clear_progress()
        self._write(sys.stderr, one_line(text) + "\n")

    def ask(self, question: str) -> bool:
        """Ask a yes-or-no question; False without asking where stdin or stderr is not a terminal."""
        self._clear_progress()
        if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        self._write(sys.stderr, one_line(question))
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def progress(self, text: str) -> None:
        if not self.is_interactive:
            return
        text = one_line(text)[: max(10, shutil.get_terminal_size().columns - 1)]
        self._write(self._people, "\r" + text.ljust(self._line_shown))
        self._line_shown = len(text)

    def end_progress(self) -> None:
        if self._line_shown:
            self._write(self._people, "\n")
            self._line_shown = 0

    def error(self, error: RankdeckError) -> None:
        self.end_progress()
        parts = (error.title, error.cause, error.next_step)
        self._write(sys.stderr, "".join(_shortened(visible(" ".join(part.split()))) + "\n" for part in parts))

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        lines = [[one_line(cell) for cell in row] for row in (headings, *rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
        for line in lines:
            self.say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())

    def facts(self, facts: Mapping[str, str]) -> None:
        width = max(map(len, facts), default=0)
        for name, value in facts.items():
            self.say(f"{name.ljust(width)}  {value}".rstrip())

    def _clear_progress(self) -> None:
        if self._line_shown:
            self._write(self._people, "\r" + " " * self._line_shown + "\r")
            self._line_shown = 0

    def _write(self, stream: TextIO, text: str) -> None:
        number = 1 if stream is sys.stdout else 2
        if number in self._broken:
            return
        try:
            stream.write(text)
            stream.flush()
        except OSError as error:
            if not isinstance(error, BrokenPipeError) and error.errno != errno.EINVAL:  # EINVAL: Windows' broken pipe
                raise
            self._broken.add(number)
            _discard(stream)


def _discard(stream: TextIO) -> None:
    """Redirect a stream whose reader has gone to nowhere, so that the interpreter's last flush is silent."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
