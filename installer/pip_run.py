"""Runs pip with one progress line and a log, and explains its failures."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from core.environments.pip_environment import clean
from core.environments.pip_failures import explain_pip
from installer.console import ProgressLine, SetupError

_REFRESH_S: Final = 0.5
_TAIL_LINES: Final = 400
_SHOWN_LINES: Final = 12
_END_LIMIT_S: Final = 10.0


class PipError(SetupError):
    """pip ended with an error; `missing`: the index has no such version, and another one may have it."""

    def __init__(self, cause: str, next_step: str, *, missing: bool) -> None:
        super().__init__("The Python packages could not be installed", cause, next_step)
        self.missing = missing


@dataclass(frozen=True)
class Pip:
    """An interpreter's pip.

    Attributes:
        log: pip's output is appended to this file.
        scratch: A folder for pip's temporary files, on the environment's disk: ``/tmp`` is often too small.
        inherited: Descriptors that pip is to hold as long as it lives (POSIX only).
    """

    python: Path
    log: Path
    scratch: Path
    inherited: tuple[int, ...]

    def run(self, arguments: Sequence[str], progress: ProgressLine) -> None:
        """Run ``python -m pip …`` to its end, and show each download on the way; raises `PipError`."""
        self.scratch.mkdir(exist_ok=True)
        scratch = str(self.scratch)
        environment = clean(os.environ)
        environment.update(TMPDIR=scratch, TEMP=scratch, TMP=scratch, PYTHONIOENCODING="utf-8", PYTHONUNBUFFERED="1")
        command = [str(self.python), "-m", "pip", *arguments]
        with self.log.open("ab") as output, self.log.open("rb") as printed:
            output.write(f"\n$ {' '.join(command)}\n".encode())
            output.flush()
            start = printed.seek(0, os.SEEK_END)
            options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(command, **options, env=environment, pass_fds=self.inherited)
            try:
                _follow(process, printed, progress)
            except BaseException:
                process.terminate()
                raise
            finally:
                code = _end(process)
            printed.seek(start)
            tail = printed.read().decode("utf-8", errors="replace").splitlines()[-_TAIL_LINES:]
        if code:
            raise explain_failure(tail, self.log)


def _follow(process: subprocess.Popen[bytes], printed: IO[bytes], progress: ProgressLine) -> None:
    """Show what pip is doing, from its log, until it has ended."""
    doing = "asking pip"
    while process.poll() is None:
        for line in printed:
            doing = activity(line.decode("utf-8", errors="replace")) or doing
        progress.show(doing)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REFRESH_S)


def _end(process: subprocess.Popen[bytes]) -> int:
    """End pip if it still runs because we were interrupted; return its exit code."""
    try:
        return process.wait(timeout=_END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait(timeout=_END_LIMIT_S)


def activity(line: str) -> str:
    """pip's action for the progress line, from one of its lines; empty where the line tells of none."""
    if found := re.match(r"\s*Downloading (\S+?)(?:#\S*)?( \([\d.]+ \w+\))?$", line.rstrip()):
        return f"downloading {found[1].rsplit('/', 1)[-1]}{found[2] or ''}"
    if found := re.match(r"\s*(?:Collecting|Processing) (\S+)", line):
        name = re.split(r"[\\/]", found[1])[-1]
        return f"asking for {re.split(r'[=<>!~;-]', name)[0]}"
    if found := re.match(r"\s*Installing collected packages: (.*)", line):
        count = found[1].count(",") + 1
        return f"unpacking {count} package{'s' if count > 1 else ''}"
    return ""


def explain_failure(lines: list[str], log: Path) -> PipError:
    """Explain pip's failure with the last lines of its output."""
    shown = "\n".join(f"    {line}" for line in lines[-_SHOWN_LINES:])
    shown_lines = f"The last lines of {log}:\n{shown}"
    failure = explain_pip("\n".join(lines))
    if failure.cause:
        return PipError(f"{failure.cause} {shown_lines}", failure.next_step, missing=failure.missing)
    return PipError(f"pip ended with an error. {shown_lines}", f"Read the full output in {log}.", missing=False)
