"""Stack signal: has a process in which no Python runs leave the stacks of its threads in a file. POSIX only.

faulthandler could do so by a timer, but walks the stacks beside the threads: where these run Python meanwhile, it reads
what they free, and crashes the process (https://github.com/python/cpython/issues/131580). A timer that was due when a
process continued after SIGSTOP did so one time in seven. So who wants the stacks sends a signal, and only to a process
that gives no answer, and is not stopped.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.files.links import append_unlinked
from core.held_files import read_utf8
from core.parsing import parse_json
from core.processes.identity import ProcessId, is_alive, own

LIMIT_S: Final = 3.0
_LOOK_EVERY_S: Final = 0.1
if sys.platform == "win32":
    SIGNAL: Final[int | None] = None
elif sys.platform == "darwin":
    SIGNAL: Final[int | None] = signal.SIGINFO
else:  # one that neither programs nor schedulers use for themselves
    SIGNAL: Final[int | None] = signal.SIGRTMIN + 9


class StackFile:
    """Leaves this process's stacks in a file at the signal, from now on. Made and closed on the main thread.

    Args:
        path: The file, whose first line names the process and says that the signal may be sent. None is made on
            Windows, which has no signal for it.

    Raises:
        LinkError: The path is a link.
        OSError: The file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = None
        if sys.platform != "win32" and SIGNAL is not None:
            signal.signal(SIGNAL, signal.SIG_IGN)  # one that comes too late ends nothing
            path.unlink(missing_ok=True)
            self._file = append_unlinked(path)
            faulthandler.register(SIGNAL, file=self._file)
            self._file.write(f"{json.dumps(dataclasses.asdict(own()))}\n".encode())

    def close(self) -> None:
        """Removes the file."""
        if sys.platform != "win32" and SIGNAL is not None and self._file is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            faulthandler.unregister(SIGNAL)
            self._file.close()
            self._file = None


def ask_for_stacks(path: Path, limit_s: float = LIMIT_S) -> str:
    """The stacks that a process leaves in its `StackFile` at the signal; empty where it leaves none in time."""
    first = _read(path)
    process = _process_in(first)
    if SIGNAL is None or process is None or not is_alive(process):
        return ""
    try:
        os.kill(process.pid, SIGNAL)
    except OSError:
        return ""
    until, left = time.monotonic() + limit_s, ""
    while time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)
        before, left = left, _read(path)[len(first) :]
        if left and left == before:
            break  # it does not grow any more
    return left


def _process_in(text: str) -> ProcessId | None:
    first, end, _ = text.partition("\n")
    if not end:
        return None
    try:
        return ProcessId.from_json(parse_json(first))
    except (ValueError, RankdeckError):
        return None


def _read(path: Path) -> str:
    try:
        return read_utf8(path, errors="replace")
    except OSError:
        return ""
