"""Output during setup: one progress line, or one error message."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self, TextIO

QUIET_INTERVAL_S: Final = 15.0


class SetupError(Exception):
    """The checkout cannot be set up. Has title, cause and next step, like every error of Rankdeck.

    Args:
        next_step: One sentence, or lines with a command to run.
        exit_code: 1 a step failed, 2 wrong arguments, 3 this machine is not ready.
    """

    def __init__(self, title: str, cause: str, next_step: str, *, exit_code: int = 1) -> None:
        super().__init__(title)
        self.title = title
        self.cause = cause
        self.next_step = next_step
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.title}\n{self.cause}\n{self.next_step}"


def run_logged(command: Sequence[str], log: Path, limit_s: float, env: Mapping[str, str], **more: Any) -> int:
    """Run a command whose output is appended to a log; `more` is for `subprocess.run`. Returns its exit code."""
    with log.open("ab") as output:
        more |= {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        return int(subprocess.run(command, timeout=limit_s, env=env, check=False, **more).returncode)


class ProgressLine:
    """One line that is rewritten on a terminal; elsewhere a plain line for each step.

    Use it as a context manager, so that a terminal's line is ended whatever happens.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._started = time.monotonic()
        self._text = ""
        self._printed = 0.0
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal and self._width:
            self._stream.write("\n")
            self._stream.flush()

    def say(self, text: str) -> None:
        """Start a new step, with a line that stays."""
        self.show(text, always=True)

    def show(self, text: str, *, always: bool = False) -> None:
        """Rewrite the line; off a terminal it is printed when `always`, or when nothing was for a while."""
        now = time.monotonic()
        line = f"[{now - self._started:4.0f} s] {text}"
        if self._terminal:
            line = line[:119]
            self._stream.write("\r" + line.ljust(self._width))
            self._stream.flush()
            self._width = len(line)
        elif (always and text != self._text) or now - self._printed >= QUIET_INTERVAL_S:
            print(line, file=self._stream, flush=True)
            self._printed = now
        self._text = text
