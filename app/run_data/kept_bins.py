"""Bins of a run's long columns as a file: `columns/bins.bin`, so that only the first window reads all rows of a run.

A line of JSON says of which columns they are and up to which row, and has a checksum of what follows: the bins of one
column after the other, minima, maxima and means, as little-endian float64. No NumPy here: the file is read before that
is imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from core.errors import RankdeckError, StateFileError
from core.files.atomic import read_bytes, remove_temporaries, require_format, write_atomic
from core.files.links import refuse_link
from core.held_files import open_binary
from core.metrics.column_index import INDEX_NAME, VALUE_BYTES, ColumnsIndex, GroupIndex
from core.parsing import ParseError, decode_utf8, parse_json
from core.records import RecordError, Whole, read_record

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
        name: The group.
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
        """What the bins of one of its columns take."""
        return self.rows // BIN_ROWS * VALUES * VALUE_BYTES


@dataclass(frozen=True, slots=True)
class KeptBins:
    """Bins of columns.

    Attributes:
        groups: Whose they are.
        values: Those of all groups, one after the other.
    """

    groups: tuple[GroupBins, ...]
    values: memoryview

    @classmethod
    def parse(cls, written: bytes) -> KeptBins | None:
        """What `head_line` and the values behind it say; None if they are cut, damaged or of another version."""
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
        """Up to which row a group's columns are binned."""
        return next((known.rows for known in self.groups if known.name == group), 0)


def head_line(groups: Sequence[GroupBins], crc32: int) -> bytes:
    """The line in front of the values.

    Args:
        groups: Whose they are.
        crc32: Of all values.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "bin": BIN_ROWS,
        "crc32": crc32,
        "groups": [asdict(group) for group in groups],
    }
    return json.dumps(document).encode() + b"\n"


def group_bins(folder: Path, group: GroupIndex, names: Sequence[str]) -> GroupBins | None:
    """What is said of a group's bins before they are made; None where they cannot be kept.

    Before: rows that are replaced meanwhile, because the run is resumed, then do not fit what was said.

    Raises:
        OSError: The times cannot be read.
    """
    rows = group.rows // BIN_ROWS * BIN_ROWS
    if not rows or CLOCK not in names:
        return None
    return GroupBins(group.name, rows, tuple(names), _last_times_sha256(folder, group, rows))


def read_kept(folder: Path, index: ColumnsIndex) -> KeptBins | None:
    """The bins in a `columns` folder, if they are of its columns; rows that came since are not in them."""
    try:
        kept = KeptBins.parse(read_bytes(folder / NAME, limit_bytes=LARGEST_BYTES))
    except StateFileError:
        return None
    return kept if kept is not None and are_of(kept, folder, index) else None


def are_of(kept: KeptBins, folder: Path, index: ColumnsIndex) -> bool:
    """Whether the columns still have the rows that were binned: a resumed run has others in their place."""
    try:
        return all(_is_of(bins, folder, index.groups.get(bins.name)) for bins in kept.groups)
    except OSError:
        return False


def _is_of(bins: GroupBins, folder: Path, group: GroupIndex | None) -> bool:
    if group is None or group.rows < bins.rows or not set(bins.names) <= set(group.names) or CLOCK not in group.names:
        return False
    return _last_times_sha256(folder, group, bins.rows) == bins.last_times_sha256


def keep(folder: Path, written: bytes) -> None:
    """Writes bins into a `columns` folder. Says nothing where that cannot be done: they are made again next time."""
    if len(written) > LARGEST_BYTES:
        return
    with contextlib.suppress(RankdeckError, OSError):
        refuse_link(folder)
        remove_temporaries(folder, others=(INDEX_NAME,))  # of a window that was killed in the middle of it
        write_atomic(folder / NAME, written, durable=False, timeout_s=_REPLACE_LIMIT_S)


def _last_times_sha256(folder: Path, group: GroupIndex, rows: int) -> str:
    with open_binary(group.path(folder, CLOCK)) as file:
        file.seek((rows - BIN_ROWS) * VALUE_BYTES)
        return hashlib.sha256(file.read(BIN_ROWS * VALUE_BYTES)).hexdigest()
