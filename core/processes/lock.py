"""Lock that a live run host holds on its folder: two hosts cannot own one run."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Final, Self

from core.errors import RunBusyError
from core.files.atomic import explained
from core.files.links import open_unlinked
from core.held_files import read_all
from core.parsing import ParseError, parse_json
from core.processes.identity import ProcessId, is_alive, own

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# Windows locks keep others from reading the locked bytes, so a byte far behind the text is the one that is locked.
_LOCKED_BYTE: Final = 1 << 30
_READ_WRITE: Final = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_PROBE_WAIT_S: Final = 0.2


class RunLock:
    """A lock, held from construction until `release` or the end of the process, however it ends.

    The operating system holds it, so a dead host's lock never has to be judged stale. The file's text (pid and start
    time) is information only; the file stays behind, empty, when the lock is released.

    Raises:
        RunBusyError: Another host holds it; names its pid.
        PreflightError: The file cannot be made.
        LinkError: It is a link.
    """

    def __init__(self, path: Path) -> None:
        with explained(f"{path} could not be made"):
            descriptor = open_unlinked(path, _READ_WRITE | os.O_CREAT, 0o644)
        try:
            _lock_soon(descriptor)
        except OSError:
            os.close(descriptor)
            holder = lock_holder(path)
            who = f"process {holder.pid}" if holder else "another process"
            raise RunBusyError(
                f"{who[0].upper()}{who[1:]} is the host of the run in {path.parent}.",
                "Attach to it, or stop it first: rankdeck stop.",
            ) from None
        self._descriptor: int | None = descriptor
        me = own()
        text = json.dumps({"pid": me.pid, "started": me.started}).encode("utf-8")
        os.ftruncate(descriptor, 0)
        os.write(descriptor, text)

    def release(self) -> None:
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):  # closing releases it too
            os.ftruncate(self._descriptor, 0)
            _unlock(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Whether a process holds the lock just now. To find out it is taken for an instant."""
    try:
        descriptor = os.open(path, _READ_WRITE)
    except FileNotFoundError:
        return False
    except OSError:  # another user's file: only its text can be judged
        holder = lock_holder(path)
        return holder is not None and is_alive(holder)
    try:
        _lock(descriptor)
        _unlock(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock_soon(descriptor: int) -> None:
    """Take the lock, waiting for one that is held for an instant only (`is_held`)."""
    deadline = time.monotonic() + _PROBE_WAIT_S
    while True:
        try:
            _lock(descriptor)
            return
        except OSError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_PROBE_WAIT_S / 20)


def lock_holder(path: Path) -> ProcessId | None:
    """Read the process that last wrote its name into the lock file. It may be dead."""
    try:
        return ProcessId.from_json(parse_json(read_all(path)))
    except (OSError, ParseError):
        return None


if sys.platform == "win32":

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
