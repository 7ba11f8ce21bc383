"""Held files: calls tried again for a moment while, on Windows, another program has a file open.

A virus scanner, an indexer or a backup opens a file the instant it is written, often without sharing it. Opening,
replacing, renaming or removing it is then refused, and a moment later not. POSIX refuses none of it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

T = TypeVar("T")

# Scanners hold a small file for some ten milliseconds, a large one for a second.
HELD_LIMIT_S: Final = 2.0
# For callers who must not wait: the window's thread, the host between two messages.
BRIEFLY_S: Final = 0.1
# ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION, ERROR_USER_MAPPED_FILE.
IN_USE: Final = (32, 33, 1224)
# ERROR_ACCESS_DENIED too: that is the error of replacing a file that another program has open; and ERROR_DIR_NOT_EMPTY,
# of removing a folder whose removed file is still held.
_BUSY: Final = (5, *IN_USE, 145)
_FIRST_PAUSE_S: Final = 0.005
_LAST_PAUSE_S: Final = 0.05
# Not sys.platform, so that the checker reads both branches on either system.
_WINDOWS: Final = os.name == "nt"


class NotRegularError(OSError):
    """A device, pipe or socket stands where a file is to be read."""


def is_sharing_violation(error: OSError) -> bool:
    """True for a refusal that may pass when another process closes the file; never on POSIX.

    Windows' own calls say which refusal it is; `open` goes through the C library, which only says "permission".
    """
    winerror = getattr(error, "winerror", None)
    return _WINDOWS and (winerror in _BUSY or (winerror is None and error.errno == errno.EACCES))


def retried(call: Callable[[], T], timeout_s: float = HELD_LIMIT_S) -> T:
    """Repeat a call while another program has its file open; other errors are raised at once."""
    deadline, pause_s = time.monotonic() + timeout_s, _FIRST_PAUSE_S
    while True:
        try:
            return call()
        except OSError as error:
            if not is_sharing_violation(error) or time.monotonic() >= deadline:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LAST_PAUSE_S)


def open_binary(path: Path, mode: str = "rb", *, buffering: int = -1, timeout_s: float = HELD_LIMIT_S) -> BinaryIO:
    """Open a file in a binary mode, as `retried`; opening for reading or appending loses nothing when done again.

    Raises:
        NotRegularError: A device or a pipe is to be read, which might never end.
        OSError: As `Path.open`.
    """
    assert "b" in mode
    opener = _open_regular if mode in ("rb", "r+b") else None
    return retried(lambda: open(path, mode, buffering, opener=opener), timeout_s)  # type: ignore[return-value]  # a binary mode


def _open_regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe without a writer would be waited for
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise NotRegularError(errno.EINVAL, "It is a device or a pipe, not a file", path)


def read_all(path: Path, timeout_s: float = HELD_LIMIT_S) -> bytes:
    with open_binary(path, buffering=0, timeout_s=timeout_s) as file:
        return file.read()


def read_utf8(path: Path, errors: str = "strict", timeout_s: float = HELD_LIMIT_S) -> str:
    text = read_all(path, timeout_s).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def rename(source: Path, target: Path, timeout_s: float = HELD_LIMIT_S) -> None:
    """`Path.rename`, as `retried`: a folder too is refused while a file in it is held."""
    retried(lambda: source.rename(target), timeout_s)


def remove_file(path: Path, timeout_s: float = HELD_LIMIT_S) -> None:
    retried(lambda: path.unlink(missing_ok=True), timeout_s)


def remove_folder(folder: Path, timeout_s: float = HELD_LIMIT_S) -> None:
    retried(lambda: shutil.rmtree(folder), timeout_s)
