"""Process that bins a run's long columns while the window is still imported, where that was not done before.

A thread would give up Python's lock with each slice that it reads, and get it back 5 ms later while something else is
imported: 1.1 GB of a run of 10,000,000 steps are some five thousand such slices. No NumPy: the process is started
before that is imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError, StateFileError
from core.files.atomic import read_bytes, remove_temporaries, require_format, write_atomic
from core.files.links import refuse_link
from core.held_files import open_binary
from core.metrics.column_index import INDEX_NAME, VALUE_BYTES, ColumnsIndex, GroupIndex, read_index
from core.parsing import ParseError, decode_utf8, parse_json
from core.paths import PACKAGE_FOLDER
from core.program_search import NO_WINDOW
from core.records import RecordError, Whole, read_record
from core.run_folder.store import RunStore

NAME: Final = "bins.bin"
FORMAT: Final = "rankdeck-bins"
VERSION: Final = 1
# Rows in a bin.
BIN_ROWS: Final = 256
# Of each bin: minimum, maximum and mean.
VALUES: Final = 3
# The one column that is looked at: a step that is trained again has another time, also where all else is the same.
CLOCK: Final = "ts"
LARGEST_BYTES: Final = 256 << 20
# Another window may have the file open just now; whichever keeps its bins, they are the same.
_REPLACE_LIMIT_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class GroupBins:
    """A group's part of the bins.

    Attributes:
        rows: Rows that are binned, from the first on: whole bins.
        names: Its columns, in the order of their bins.
        last_times_sha256: Of the rows of the last bin in the column of times.
    """

    name: str
    rows: Whole
    names: tuple[str, ...]
    last_times_sha256: str

    @property
    def column_bytes(self) -> int:
        """Bytes that the bins of one column take."""
        return self.rows // BIN_ROWS * VALUES * VALUE_BYTES


@dataclass(frozen=True, slots=True)
class KeptBins:
    """Bins of columns.

    Attributes:
        values: Those of all groups, one after the other.
    """

    groups: tuple[GroupBins, ...]
    values: memoryview

    @classmethod
    def parse(cls, written: bytes) -> KeptBins | None:
        """Parse `head_line` and the values behind it; None if they are cut, damaged or of another version."""
        end = written.find(b"\n") + 1
        try:
            document = require_format(parse_json(decode_utf8(written[:end])), Path(NAME), FORMAT, VERSION)
            groups = tuple(read_record(GroupBins, group) for group in document["groups"])
        except (ParseError, RankdeckError, RecordError, KeyError, TypeError):
            return None
        values = memoryview(written)[end:]
        is_whole = len(values) == sum(group.column_bytes * len(group.names) for group in groups)
        if not is_whole or document.get("bin") != BIN_ROWS or zlib.crc32(values) != document.get("crc32"):
            return None
        return cls(groups, values)

    def rows(self, group: str) -> int:
        """Rows of a group that are binned, from the first on."""
        return next((known.rows for known in self.groups if known.name == group), 0)


def head_line(groups: Sequence[GroupBins], crc32: int) -> bytes:
    """The line before the values; `crc32` is that of all values."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "bin": BIN_ROWS,
        "crc32": crc32,
        "groups": [asdict(group) for group in groups],
    }
    return json.dumps(document).encode() + b"\n"


def group_bins(folder: Path, group: GroupIndex, names: Sequence[str]) -> GroupBins | None:
    """Describe a group's bins before they are made; None where they cannot be kept.

    If rows are replaced meanwhile, because the run is resumed, they no longer fit this description.

    Raises:
        OSError: The times cannot be read.
    """
    rows = group.rows // BIN_ROWS * BIN_ROWS
    if not rows or CLOCK not in names:
        return None
    return GroupBins(group.name, rows, tuple(names), _last_times_sha256(folder, group, rows))


def read_kept(folder: Path, index: ColumnsIndex) -> KeptBins | None:
    """Return the bins in a `columns` folder if they are of its columns; rows that came since are not in them."""
    try:
        kept = KeptBins.parse(read_bytes(folder / NAME, limit_bytes=LARGEST_BYTES))
    except StateFileError:
        return None
    return kept if kept is not None and are_of(kept, folder, index) else None


def are_of(kept: KeptBins, folder: Path, index: ColumnsIndex) -> bool:
    """True while the columns have the rows that were binned: a resumed run has others in their place."""
    try:
        return all(_is_of(bins, folder, index.groups.get(bins.name)) for bins in kept.groups)
    except OSError:
        return False


def _is_of(bins: GroupBins, folder: Path, group: GroupIndex | None) -> bool:
    if group is None or group.rows < bins.rows or not set(bins.names) <= set(group.names) or CLOCK not in group.names:
        return False
    return _last_times_sha256(folder, group, bins.rows) == bins.last_times_sha256


def keep(folder: Path, written: bytes) -> None:
    """Writes bins into a `columns` folder; an error is ignored, since they can be made again."""
    if len(written) > LARGEST_BYTES:
        return
    with contextlib.suppress(RankdeckError, OSError):
        refuse_link(folder)
        # Of a window that was killed in the middle of it.
        remove_temporaries(folder, others=(INDEX_NAME,))
        write_atomic(folder / NAME, written, durable=False, timeout_s=_REPLACE_LIMIT_S)


def _last_times_sha256(folder: Path, group: GroupIndex, rows: int) -> str:
    with open_binary(group.path(folder, CLOCK)) as file:
        file.seek((rows - BIN_ROWS) * VALUE_BYTES)
        return hashlib.sha256(file.read(BIN_ROWS * VALUE_BYTES)).hexdigest()


# Columns of the charts that nearly every run has; those of others are binned when they are in sight.
PLOTTED_NAMES: Final = ("step", "ts", "loss", "tokens_per_s", "step_time_s", "data_wait_s", "sync_wait_s", "lr")
# Shorter columns are binned in less time than a process needs to start.
LONG_ROWS: Final = 1 << 21


def kill_when(stopping: threading.Event, process: subprocess.Popen[Any]) -> None:
    """Kills a process as soon as `stopping` is set; returns once it has ended."""
    while process.poll() is None:
        if stopping.wait(0.1):
            process.kill()
            return


class BinsProcess:
    """Runs `app.run_data.column_bins`, with a file without a name for its output.

    Args:
        rows: Of the shortest column that is binned.
    """

    def __init__(self, store: RunStore, rows: int) -> None:
        self._output = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # `result` or `close` closes it
        command = [sys.executable, "-m", "app.run_data.column_bins", str(store.columns), str(rows), *PLOTTED_NAMES]
        self._process = subprocess.Popen(
            command, cwd=PACKAGE_FOLDER, creationflags=NO_WINDOW,
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def result(self, stopping: threading.Event) -> bytes:
        """Wait for the output; empty if the process failed, or was ended because `stopping` was set."""
        watcher = threading.Thread(target=kill_when, args=(stopping, self._process), daemon=True)
        watcher.start()
        code = self._process.wait()
        watcher.join()
        with self._output:
            if code:
                return b""
            self._output.seek(0)
            return self._output.read()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()


class LongBins:
    """The bins of a run's long columns: kept beside them, or made of all rows by a process.

    Args:
        kept: Those that are kept of them.
        process: What makes them; None: the kept ones are enough.
    """

    def __init__(self, folder: Path, index: ColumnsIndex, kept: KeptBins | None, process: BinsProcess | None) -> None:
        self._folder = folder
        self._index = index
        self._kept = kept
        self._process = process
        self._written = b""

    @classmethod
    def find(cls, store: RunStore) -> LongBins | None:
        """Find the bins of a run with long columns; starts a process where many rows are not binned."""
        index = read_index(store.columns)
        if index is None or all(group.rows < LONG_ROWS for group in index.groups.values()):
            return None
        kept, process = read_kept(store.columns, index), None
        if any(group.rows - (kept.rows(group.name) if kept else 0) >= LONG_ROWS for group in index.groups.values()):
            with contextlib.suppress(OSError):  # the thread that reads the run makes them
                process = BinsProcess(store, LONG_ROWS)
        return cls(store.columns, index, kept, process)

    def take(self, stopping: threading.Event, index: ColumnsIndex) -> KeptBins | None:
        """Return the bins for the columns of `index`, once; None if there are none. Waits for the process."""
        process, kept, self._process, self._kept = self._process, self._kept, None, None
        if process is not None:
            self._written = process.result(stopping)
            kept = KeptBins.parse(self._written)
        elif index == self._index:
            return kept
        return kept if kept is not None and are_of(kept, self._folder, index) else None

    def keep(self) -> None:
        """Writes what a process made beside the columns, for the next time."""
        if self._written:
            keep(self._folder, self._written)
            self._written = b""

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
