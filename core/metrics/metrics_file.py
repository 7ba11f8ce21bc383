"""`metrics.jsonl`: one writer appends whole lines, any number of readers follow it from a byte offset they know."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from core.errors import PreflightError
from core.files.atomic import explain, explained
from core.files.links import append_unlinked
from core.held_files import open_binary
from core.parsing import ParseError, parse_json

_SCAN_BYTES: Final = 1 << 16
READ_BYTES: Final = 8 << 20
# A host writes lines of at most 1 MiB: what is longer is not metrics, and would fill the memory.
LONGEST_LINE_BYTES: Final = 64 << 20


class MetricsWriter:
    """Appends lines to a run's metrics file. The run host holds the only one.

    A line that a killed host left unfinished is cut off on opening, so that every line in the file is whole.

    Args:
        path: The file; it is made if it is missing.
        log_file: A second file that gets the same lines (`--log-file`). If it fails, training continues without
            it and `copy_problem` says why.
    """

    def __init__(self, path: Path, log_file: Path | None = None) -> None:
        self.path = path
        self.copy_problem: str | None = None
        self._copy: BinaryIO | None = None
        with explained(f"{path} could not be opened"):
            self._file: BinaryIO = append_unlinked(path)
            self._size = repair(path)
        if log_file is not None:
            try:
                log_file.parent.mkdir(parents=True, exist_ok=True)
                self._copy = open_binary(log_file, "ab", buffering=0)
                if log_file.is_file():  # a copy may go to a device or a pipe
                    repair(log_file)
            except OSError as error:
                self._give_up_copy(log_file, error)

    def append(self, lines: Sequence[bytes]) -> int:
        """Write lines (with or without their newline) and return the file's new size in bytes.

        When it returns, a reader sees them; after a power cut only lines before the last `sync` are sure. When it
        raises `PreflightError`, the file ends with its last whole line.
        """
        if not lines:
            return self._size
        data = b"".join([line if line.endswith(b"\n") else line + b"\n" for line in lines])
        try:
            _write_all(self._file, data)
        except OSError as error:
            os.truncate(self.path, self._size)
            raise explain(error, f"{self.path} could not be written") from error
        self._size += len(data)
        if self._copy is not None:
            try:
                _write_all(self._copy, data)
            except OSError as error:
                self._give_up_copy(Path(self._copy.name), error)
        return self._size

    def sync(self) -> None:
        """Make every line so far survive a power cut; raises as `append`."""
        with explained(f"{self.path} could not be written"):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
        if self._copy is not None:
            self._copy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _give_up_copy(self, path: Path, error: OSError) -> None:
        problem = explain(error, f"The copy of the metrics in {path} could not be written")
        self.copy_problem = f"{problem.cause} Training continues without it."
        if self._copy is not None:
            self._copy.close()
            self._copy = None


class MetricsTail:
    """Reads the complete lines of a metrics file from a byte offset on, again and again while it grows."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset

    def read(self, limit_bytes: int = READ_BYTES) -> list[bytes]:
        """The next complete lines, without newlines, of about `limit_bytes`; an empty list without new ones.

        Raises:
            PreflightError: The file is there and cannot be read, or holds no lines.
        """
        try:
            with open_binary(self.path) as file:
                file.seek(self.offset)
                data = file.read(limit_bytes)
                while b"\n" not in data and len(data) >= limit_bytes:  # one line longer than the limit
                    if limit_bytes >= LONGEST_LINE_BYTES:
                        raise _not_metrics(self.path)
                    limit_bytes *= 2
                    data += file.read(limit_bytes - len(data))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise explain(error, f"{self.path} could not be read") from error
        end = data.rfind(b"\n") + 1
        self.offset += end
        return data[: end - 1].split(b"\n") if end else []


def parse_line(line: bytes) -> dict[str, Any]:
    """Parse a line of metrics; a damaged one is empty, since it must not hide the others."""
    try:
        value = parse_json(line)
    except ParseError:
        return {}
    return value if isinstance(value, dict) else {}


def _not_metrics(path: Path) -> PreflightError:
    size = LONGEST_LINE_BYTES >> 20
    cause = f"{path} holds a line of more than {size} MiB, so it is not a file of metrics."
    return PreflightError(cause, "Move it away, or put a copy of the right file back.", title="The metrics are damaged")


def repair(path: Path) -> int:
    """Cut off an unfinished last line and return the remaining size in bytes; raises OSError."""
    with open_binary(path, "r+b") as file:
        whole = _end_of_lines(file)
        if whole < file.seek(0, os.SEEK_END):
            file.truncate(whole)
        return whole


def whole_bytes(path: Path) -> int:
    """The size of a metrics file without an unfinished last line; 0 when there is no file. Raises `PreflightError`."""
    with explained(f"{path} could not be read"), contextlib.suppress(FileNotFoundError), open_binary(path) as file:
        return _end_of_lines(file)
    return 0


def _end_of_lines(file: BinaryIO) -> int:
    size = end = file.seek(0, os.SEEK_END)
    while end > 0:
        if size - end > LONGEST_LINE_BYTES:
            raise OSError(errno.EINVAL, "It holds a line that is too long for a file of metrics", file.name)
        start = max(0, end - _SCAN_BYTES)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _write_all(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:  # a raw file may take less than it is given
        view = view[file.write(view) :]
