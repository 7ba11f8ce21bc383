"""`columns/index.json`: how far the columns beside `metrics.jsonl` go, and whether they still belong to it."""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from core.errors import FileInUseError, StateFileError
from core.files.atomic import read_json, require_format, write_atomic
from core.held_files import BRIEFLY_S, open_binary
from core.records import RecordError, Whole, read_record

FORMAT: Final = "rankdeck-columns"
# Version 1 also had files `<stem>.minmax.f64`; they are not read, and an older Rankdeck must not trust them.
VERSION: Final = 2
VALUE_BYTES: Final = 8
TAIL_BYTES: Final = 4096
INDEX_NAME: Final = "index.json"
EVENTS_NAME: Final = "events.jsonl"
_STEM_LENGTH: Final = 80
_WINDOWS_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GroupIndex:
    """One group of columns of the same length: "rank0", "device/GPU-…", "device/host", "eval", "eval/rank1", ….

    Attributes:
        rows: Rows that count; a file may be longer, never shorter.
        files: Column to the first part of its files' names, where that is not the column's name itself.
    """

    name: str
    folder: str
    rows: Whole
    names: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)

    def path(self, columns: Path, name: str) -> Path:
        return columns / self.folder / f"{self.files.get(name, name)}.f64"


@dataclass(frozen=True, slots=True)
class ColumnsIndex:
    """Extent of the columns.

    Attributes:
        source_bytes: Bytes of `metrics.jsonl` that they hold.
        source_tail_sha256: Of the last (at most 4096) bytes before that.
        events_bytes: Bytes of `events.jsonl` that count.
    """

    source_bytes: Whole
    source_tail_sha256: str
    groups: dict[str, GroupIndex]
    events_bytes: Whole

    def save(self, folder: Path, timeout_s: float = BRIEFLY_S) -> None:
        """Replace the index file, unsynced since it is derived; raises `RankdeckError` when the disk refuses.

        By default a reader that holds the old file is not waited for long: the host writes again a second later.
        """
        groups: dict[str, Any] = {}
        for group in self.groups.values():
            groups[group.name] = {"rows": group.rows, "names": list(group.names), "folder": group.folder}
            if group.files:
                groups[group.name]["files"] = group.files
        document = {
            "format": FORMAT,
            "version": VERSION,
            "source_bytes": self.source_bytes,
            "source_tail_sha256": self.source_tail_sha256,
            "events": {"bytes": self.events_bytes},
            "groups": groups,
        }
        text = json.dumps(document, ensure_ascii=False) + "\n"
        write_atomic(folder / INDEX_NAME, text, durable=False, timeout_s=timeout_s)

    def belongs_to(self, metrics: Path, folder: Path) -> bool:
        """Whether `metrics` still starts with the source of the columns, and every file is long enough."""
        try:
            if self.source_bytes and metrics.stat().st_size < self.source_bytes:
                return False
            if self.source_bytes and tail_sha256(metrics, self.source_bytes) != self.source_tail_sha256:
                return False
            if self.events_bytes and (folder / EVENTS_NAME).stat().st_size < self.events_bytes:
                return False
            return all(_is_whole(folder, group) for group in self.groups.values())
        except OSError:
            return False


def read_index(folder: Path) -> ColumnsIndex | None:
    """Read the index in a `columns` folder; None without a usable one, or while another program holds it."""
    try:
        return load_index(folder)
    except FileInUseError:
        return None


def load_index(folder: Path) -> ColumnsIndex | None:
    """Read the index before the columns are made again; raises `FileInUseError`: they may well be good."""
    path = folder / INDEX_NAME
    try:
        document = require_format(read_json(path), path, FORMAT, VERSION)
        groups = {name: {**group, "name": name} for name, group in document["groups"].items()}
        events_bytes = document["events"]["bytes"]
        return read_record(ColumnsIndex, {**document, "groups": groups, "events_bytes": events_bytes})
    except FileInUseError:
        raise
    except (StateFileError, KeyError, TypeError, AttributeError, RecordError):
        # Derived data: whatever is wrong with it, it is made again.
        return None


def read_rows(path: Path, first: int, count: int) -> array[float]:
    values = array("d")
    with open_binary(path) as file:
        file.seek(first * VALUE_BYTES)
        values.frombytes(file.read(count * VALUE_BYTES))
    return values


def tail_sha256(metrics: Path, source_bytes: int) -> str:
    start = max(0, source_bytes - TAIL_BYTES)
    with open_binary(metrics) as file:
        file.seek(start)
        return hashlib.sha256(file.read(source_bytes - start)).hexdigest()


def safe_stem(name: str, taken: Collection[str]) -> str:
    """A file name for any text, different from those in `taken` (in lower case) even where case does not count."""
    stem = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)[:_STEM_LENGTH] or "_"
    if stem.startswith(".") or _WINDOWS_DEVICES.fullmatch(stem):
        stem = f"_{stem}"
    free, number = stem, 1
    while free.lower() in taken:
        number += 1
        free = f"{stem}~{number}"
    return free


def _is_whole(folder: Path, group: GroupIndex) -> bool:
    sizes = (group.path(folder, name).stat().st_size for name in group.names)
    return all(size >= group.rows * VALUE_BYTES for size in sizes)
