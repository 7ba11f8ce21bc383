"""Bytes as a program writes them, cut into the pieces that stood on the screen: one for each newline and return.

A progress bar rewrites its line with ``\\r``, so what follows a return is a piece of its own though it stands on the
same physical line. Colours and cursor movements are taken out. A row of a table alone says nothing about its step, so a
table with a name and a number in each row (Stable-Baselines3, Spinning Up, Rich) is one line. Pure: no clock, no file.
"""

from __future__ import annotations

import json
import re
from typing import Final

_ROW: Final = re.compile(r"^[|│]\s*(?P<name>[A-Za-z][^|│]*?)\s*[|│]\s*(?P<value>[^|│]*?)\s*[|│]$")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)")
_STEPS: Final = ("total_timesteps", "total_env_steps", "totalenvinteracts", "timesteps", "num_timesteps")
# Their rows' names say enough.
_PLAIN_SECTIONS: Final = ("rollout/", "time/")
_OTHER_COUNTERS: Final = ("time", "time_elapsed", "iterations", "n_updates", "episodes")
MOST_ROWS: Final = 500


class Tables:
    """Passes lines on, a table as one line with a dict."""

    def __init__(self) -> None:
        self._section = ""
        self._rows: dict[str, float] = {}

    @property
    def is_open(self) -> bool:
        """Rows wait for the end of their table."""
        return bool(self._rows)

    def join(self, pieces: list[str]) -> list[str]:
        """Put the tables among the lines together; an unfinished one is kept."""
        lines: list[str] = []
        for text in pieces:
            row = _ROW.match(text) if text.startswith(("|", "│")) else None
            if row is not None and len(self._rows) < MOST_ROWS:
                self._add(row["name"], row["value"])
            else:
                lines += [*self.finish(), text]
        return lines

    def finish(self) -> list[str]:
        rows, self._rows, self._section = self._rows, {}, ""
        return [json.dumps(rows)] if rows else []

    def _add(self, name: str, value: str) -> None:
        key = name.lower()
        if not value:
            self._section = "" if key in _PLAIN_SECTIONS else name if name.endswith("/") else self._section
        elif _NUMBER.fullmatch(value) and key not in _OTHER_COUNTERS:
            self._rows["global_step" if key.rpartition("/")[2] in _STEPS else f"{self._section}{name}"] = float(value)


# What a piece may hold beyond that is passed over up to the next newline: no metric is so long.
MAX_SEGMENT_BYTES: Final = 1 << 16

_ENDS: Final = re.compile(rb"[\r\n]+")
_CONTROL: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements (CSI)
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # window titles, links (OSC)
    r"|\x1b[@-_]?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]"
)


class Segments:
    """Cuts a stream of bytes, however it arrives, into pieces of text.

    Invalid UTF-8 becomes replacement characters: a number beside it can still be read.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[str]:
        """The pieces that are complete now; empty ones are left out."""
        *complete, rest = _ENDS.split(self._rest + data)
        if self._skipping and complete:
            del complete[0]  # the end of one that was too long
            self._skipping = False
        if len(rest) > MAX_SEGMENT_BYTES:
            self._skipping, rest = True, b""
        self._rest = b"" if self._skipping else rest
        return [text for piece in complete if (text := _text(piece))]

    @property
    def unfinished(self) -> str:
        """The last output, which has no end yet."""
        return "" if self._skipping else _text(self._rest)

    def finish(self) -> list[str]:
        """The last output, which never ended."""
        text = self.unfinished
        self._rest, self._skipping = b"", False
        return [text] if text else []


def _text(piece: bytes) -> str:
    if len(piece) > MAX_SEGMENT_BYTES:
        return ""
    return _CONTROL.sub("", piece.decode("utf-8", errors="replace")).strip()
