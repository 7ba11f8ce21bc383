"""Columns beside `metrics.jsonl`, so that a window opens ten million steps without parsing their lines.

Everything here is derived: lost, stale or damaged columns are made again from `metrics.jsonl`, by the host when it
opens the run, or by ``python -m core.run_folder.rebuild_columns RUN_DIR``.

Lines ``event: "step"`` go to the group ``rank<r>``, ``device`` to ``device/<uuid>`` or ``device/host``, ``eval`` to
``eval``, or to ``eval/rank<r>`` for ranks from 1 on; all that are neither step nor device are also kept byte for byte
in `events.jsonl`. When a resumed attempt begins, rows of steps that it trains again are taken back, so the columns hold
the curve that led to the weights. `core.metrics.column_index` and `core.metrics.column_group` have the files' layout.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from core.errors import FileInUseError, RankdeckError
from core.files.atomic import explain, explained, replace_with_retry
from core.held_files import BRIEFLY_S, HELD_LIMIT_S, is_sharing_violation, open_binary, retried
from core.metrics.column_group import ColumnGroup, group_for, is_eval_group, rank_group, resumed_steps
from core.metrics.column_index import (
    EVENTS_NAME,
    ColumnsIndex,
    GroupIndex,
    load_index,
    read_index,
    safe_stem,
    tail_sha256,
)
from core.metrics.metrics_file import MetricsTail

# A window that opens a live run parses at most the lines of about a second itself.
INDEX_EVERY_S: Final = 1.0
# Lines in memory before they are written. A write opens a file a column, some twenty for a step.
PENDING_MAX: Final = 8192
# Lines that wait in memory, some 100 MB, while another program holds a column's file.
HELD_MAX: Final = 32 * PENDING_MAX
# How long opening waits for another program to let go: a backup of a large file may take that long.
OPEN_LIMIT_S: Final = 30.0
# Lines that name ever new ranks or devices must not fill the disk with folders.
GROUPS_MAX: Final = 1024
NO_TAIL: Final = hashlib.sha256().hexdigest()
_REPLAY_BYTES: Final = 4 << 20

_log = logging.getLogger(__name__)


class ColumnsWriter:
    """Keeps a live run's columns. The run host holds the only one, opened after its `MetricsWriter`.

    On opening, stale columns are made again and missing lines are caught up on, which may take a minute; the first
    `append` catches up on lines of that minute. Columns never stop a run: when the disk refuses, `problem` says so,
    nothing more is written, and the next opening catches up. While another program holds one of their files (Windows:
    virus scanners, indexers, backups), lines wait in memory. `given_up` is set when they are no longer needed.
    """

    def __init__(self, run_dir: Path, given_up: threading.Event | None = None) -> None:
        self.problem: str | None = None
        self._caught_up = False
        self._metrics = run_dir / "metrics.jsonl"
        self._written_at = time.monotonic()
        self._held_until = 0.0

        def check_wanted(_: float) -> None:
            if given_up is not None and given_up.is_set():
                raise RankdeckError("The run ended before the columns were opened.", "They are made again when needed.")

        try:
            self._columns = self._open(run_dir, check_wanted)
            self._save()
        except OSError as error:
            self._give_up(explain(error, "The columns could not be opened").cause)
        except RankdeckError as error:
            self._give_up(error.cause)

    def append(self, lines: Sequence[bytes], parsed: Sequence[dict[str, Any]], source_bytes: int) -> None:
        """Take lines that were just appended to `metrics.jsonl`, also parsed; `source_bytes` is its size with them."""
        if self.problem is not None:
            return
        try:
            if self._caught_up or self._follows(lines, source_bytes):
                self._columns.take(lines, parsed, source_bytes)
            else:  # some lines were written while the columns were being opened
                _replay(self._metrics, self._columns)
            self._caught_up = True
            now = time.monotonic()
            if now >= self._held_until and (now - self._written_at >= INDEX_EVERY_S or self._columns.is_full):
                self._save()
        except OSError as error:
            self._wait_or_give_up(error)
        except RankdeckError as error:
            self._give_up(error.cause)

    def flush(self) -> None:
        if self.problem is not None or time.monotonic() < self._held_until:
            return
        try:
            self._save()
        except OSError as error:
            self._wait_or_give_up(error)

    def close(self) -> None:
        """As `flush`, and wait a moment for a program that holds a file; nothing is held open."""
        if self.problem is not None:
            return
        try:
            retried(lambda: self._save(HELD_LIMIT_S))
        except OSError as error:
            self._give_up(explain(error, "The columns could not be written").cause)

    def _open(self, run_dir: Path, check_wanted: Callable[[float], None]) -> _Columns:
        folder, deadline = run_dir / "columns", time.monotonic() + OPEN_LIMIT_S
        while True:
            check_wanted(0.0)
            try:
                if not is_current(run_dir):
                    rebuild(run_dir, check_wanted)
                columns = _Columns(folder, load_index(folder))
                _replay(self._metrics, columns, check_wanted)
                return columns
            except (OSError, RankdeckError) as error:
                if not _is_held(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(BRIEFLY_S)

    def _wait_or_give_up(self, error: OSError) -> None:
        """Try again a second later, as long as another program that holds a file is the only reason."""
        if is_sharing_violation(error) and self._columns.pending < HELD_MAX:
            self._held_until = time.monotonic() + INDEX_EVERY_S
            return
        self._give_up(explain(error, "The columns could not be written").cause)

    def _follows(self, lines: Sequence[bytes], source_bytes: int) -> bool:
        size = sum(len(line) + (not line.endswith(b"\n")) for line in lines)
        return source_bytes - size == self._columns.source_bytes

    def _save(self, timeout_s: float = BRIEFLY_S) -> None:
        self._written_at = time.monotonic()
        try:
            self._columns.save(self._metrics, timeout_s)
        except RankdeckError as error:  # a reader holds the index: it stays behind until the next time
            _log.info("%s", error.cause)

    def _give_up(self, cause: str) -> None:
        self.problem = cause
        _log.warning("%s The run continues without columns; they are made again when it is opened.", cause)


def _is_held(error: OSError | RankdeckError) -> bool:
    reason = error.__cause__ if isinstance(error, RankdeckError) else error
    return isinstance(error, FileInUseError) or (isinstance(reason, OSError) and is_sharing_violation(reason))


def is_current(run_dir: Path) -> bool:
    """Whether a run's columns are whole and made from the start of today's `metrics.jsonl`; raises `FileInUseError`."""
    folder = run_dir / "columns"
    index = load_index(folder)
    return index is not None and index.belongs_to(run_dir / "metrics.jsonl", folder)


def rebuild(run_dir: Path, progress: Callable[[float], None] | None = None) -> None:
    """Make a run's columns from its `metrics.jsonl`, in a new folder that then takes the old one's place.

    Memory stays bounded however long the file is. Not for a live run, whose host does it.

    Raises:
        PreflightError: Disk full, no permission, or the old columns are in use.
    """
    metrics, target = run_dir / "metrics.jsonl", run_dir / "columns"
    fresh = run_dir / f"columns.new-{secrets.token_hex(4)}"
    old = run_dir / f"columns.old-{secrets.token_hex(4)}"
    try:
        make(metrics, fresh, progress)
        # A folder cannot be replaced in one step. A kill between the two leaves none, and the next reader makes one.
        if target.exists():
            replace_with_retry(target, old)
        replace_with_retry(fresh, target)
    except OSError as error:
        raise explain(error, f"The columns of {run_dir} could not be made") from error
    finally:
        for leftover in (*run_dir.glob("columns.new-*"), *run_dir.glob("columns.old-*")):
            shutil.rmtree(leftover, ignore_errors=True)


def make(metrics: Path, folder: Path, progress: Callable[[float], None] | None = None) -> ColumnsIndex | None:
    """Make columns of a `metrics.jsonl` in a new folder, and return their index; raises OSError or `RankdeckError`."""
    columns = _Columns(folder, None)
    _replay(metrics, columns, progress)
    columns.save(metrics)
    return read_index(folder)


class _Columns:
    def __init__(self, folder: Path, index: ColumnsIndex | None) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.source_bytes = index.source_bytes if index else 0
        self._events_bytes = index.events_bytes if index else 0
        self._events: list[bytes] = []
        self.pending = 0
        self._groups: dict[str, ColumnGroup] = {}
        for group in index.groups.values() if index else ():
            self._groups[group.name] = ColumnGroup(folder, group)
        self._ranks: dict[Any, list[dict[str, Any]]] = {}

    def take(self, lines: Sequence[bytes], parsed: Sequence[dict[str, Any]], source_bytes: int) -> None:
        ranks = self._ranks
        for line, value in zip(lines, parsed, strict=True):
            # The hot path: a step only joins its rank's list, and is looked at when the list is written.
            if value.get("event") == "step":
                try:
                    ranks[value["rank"]].append(value)
                except (KeyError, TypeError):
                    self._take_first_step(value)
            else:
                self._take_other(line, value)
        self.pending += len(lines)
        self.source_bytes = source_bytes

    @property
    def is_full(self) -> bool:
        return self.pending >= PENDING_MAX

    def write(self) -> None:
        for group in self._groups.values():
            group.write()
        if self._events:
            data = b"".join(self._events)
            path = self._folder / EVENTS_NAME
            path.touch()
            with open_binary(path, "r+b", timeout_s=BRIEFLY_S) as file:
                file.seek(self._events_bytes)
                file.write(data)
                file.truncate()  # a killed host may have left more
            self._events_bytes += len(data)
            self._events = []
        self.pending = 0

    def save(self, metrics: Path, timeout_s: float = BRIEFLY_S) -> None:
        """Write all pending lines and then the index; raises OSError, or `RankdeckError` for the index alone."""
        # In this order: the index counts only rows that lie in the files. Rows that a killed host wrote but did not
        # count are written over.
        self.write()
        groups = {name: group.index() for name, group in self._groups.items()}
        tail = tail_sha256(metrics, self.source_bytes) if self.source_bytes else NO_TAIL
        ColumnsIndex(self.source_bytes, tail, groups, self._events_bytes).save(self._folder, timeout_s)

    def _take_first_step(self, value: dict[str, Any]) -> None:
        rank = value.get("rank")
        group = self._group(group_for(value))
        if group is not None:
            group.pending.append(value)
            if isinstance(rank, int):
                # `take` appends to this very list, so `write` must only clear it.
                self._ranks[rank] = group.pending

    def _take_other(self, line: bytes, value: dict[str, Any]) -> None:
        group = self._group(group_for(value))
        if group is not None:
            group.pending.append(value)
        if value.get("event") == "device":
            return
        self._events.append(line if line.endswith(b"\n") else line + b"\n")
        self._take_back(resumed_steps(value))

    def _take_back(self, steps: Mapping[str, int]) -> None:
        """Drop the rows that a resumed attempt trains again: steps of each rank, and evaluations past all of them."""
        last_steps = {rank_group(rank): step for rank, step in steps.items() if rank_group(rank) in self._groups}
        if steps:
            last_steps.update(dict.fromkeys(filter(is_eval_group, self._groups), max(steps.values())))
        # Lines after this one must not be taken without it.
        with explained("The columns could not be written"):
            for name, step in last_steps.items():
                retried(partial(self._groups[name].truncate_after, step))

    def _group(self, name: str | None) -> ColumnGroup | None:
        if name is None:
            return None
        if name not in self._groups:
            if len(self._groups) >= GROUPS_MAX:
                return None
            folder = safe_stem(name, {group.index().folder.lower() for group in self._groups.values()})
            self._groups[name] = ColumnGroup(self._folder, GroupIndex(name, folder, 0, ()))
        return self._groups[name]


def _replay(metrics: Path, columns: _Columns, progress: Callable[[float], None] | None = None) -> None:
    tail = MetricsTail(metrics, columns.source_bytes)
    while lines := tail.read(_REPLAY_BYTES):
        whole: list[bytes] = []
        parsed: list[dict[str, Any]] = []
        for line in lines:
            try:
                value = orjson.loads(line)
            except ValueError:
                # A line that is damaged must not hide the others.
                continue
            if isinstance(value, dict) and isinstance(value.get("event"), str):
                whole.append(line)
                parsed.append(value)
        columns.take(whole, parsed, tail.offset)
        if columns.is_full:
            columns.write()
        if progress is not None:
            progress(min(1.0, tail.offset / max(1, metrics.stat().st_size)))
