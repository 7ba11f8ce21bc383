"""Remembered settings: what tuning found, by model shape and devices, for the next run of this kind.

A file beside the runs, as `core.launch.micro_batch_memory` has one: a help and no record.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from core.errors import RankdeckError
from core.files.atomic import read_json, require_format, write_atomic
from core.formatting import day_time
from core.launch.resolved import ResolvedRun
from core.measure.estimate.modes import mode_name
from core.measure.estimate.shape import model_shape
from core.measure.tune.choice import CHECKPOINTING, Choice, changes_text
from core.measure.tune.tuned import Tuned
from core.records import Limits, RecordError, Text, read_record

FILE: Final = "tuned.json"
FORMAT: Final = "rankdeck-tuned"
VERSION: Final = 1
_MOST_ENTRIES: Final = 500


@dataclass(frozen=True, slots=True)
class _Entry:
    micro_batch: Annotated[int, Limits(1)]
    exchange: Text = ""
    backend: Text = ""
    checkpointing: bool | None = None
    compiles: bool | None = None
    gain: Annotated[float, Limits(0, 1e6)] = 1.0
    when: Annotated[float, Limits(0, 1e11)] = 0.0


@dataclass(frozen=True, slots=True)
class _Document:
    format: str
    version: int
    tuned: dict[str, _Entry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EarlierTuning:
    """What tuning found for a run of this kind, with the global batch of this one.

    Attributes:
        changes: What differs from the run's settings; empty where the run has them already.
        gain: How much faster it was than the settings at that time; 1 where those were best.
        when: Unix seconds.
    """

    changes: dict[str, Any]
    gain: float
    when: float

    def text(self, now: float) -> str:
        """For a person: "Tuned before: micro-batch 16, accumulation 1 (1.31 × as fast, Mon 12:17)."."""
        at = day_time(self.when, now)
        if not self.changes:
            return f"Tuned before: these settings were the fastest ({at})."
        return f"Tuned before: {changes_text(self.changes)} ({self.gain:.2f} × as fast, {at})."


def remember(file: Path, found: Tuned, now: float | None = None) -> None:
    """Keeps what was found, unless nothing is known for certain; a disk that refuses changes nothing."""
    best = found.recommended or _own_best(found)
    if best is None:
        return
    gain = found.comparison.gain if found.recommended is not None and found.comparison is not None else 1.0
    when = time.time() if now is None else now
    known = _read(file)
    known.pop(key := _key(found.run), None)  # the newest entries stand last
    known[key] = _Entry(
        best.micro_batch, best.exchange, best.backend, best.checkpointing, best.compiles, gain=gain, when=when
    )
    newest = dict(list(known.items())[-_MOST_ENTRIES:])
    tuned = {name: dataclasses.asdict(entry) for name, entry in newest.items()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps({"format": FORMAT, "version": VERSION, "tuned": tuned}, indent=1) + "\n")
    except (OSError, RankdeckError):
        return


def earlier_tuning(file: Path, run: ResolvedRun) -> EarlierTuning | None:
    """What was found for a run of this kind; None if it was never tuned."""
    entry = _read(file).get(_key(run)) if file.is_file() else None
    if entry is None:
        return None
    own = Choice.of(run)
    share = own.micro_batch * own.accumulation
    size = max(size for size in range(1, min(share, entry.micro_batch) + 1) if share % size == 0)
    found = dataclasses.replace(
        own.in_micro_batches(size),
        exchange=entry.exchange if own.exchange else "",
        backend=entry.backend if own.backend else "",
        checkpointing=own.checkpointing if entry.checkpointing is None else entry.checkpointing,
        compiles=own.compiles if None in (own.compiles, entry.compiles) else entry.compiles,
    )
    return EarlierTuning(found.changes(run), entry.gain, entry.when)


def _own_best(found: Tuned) -> Choice | None:
    """The run's own settings, where they were found to be the best."""
    own = Choice.of(found.run)
    if found.is_stopped or found.best is None:
        return None
    return own if found.best.choice == own or (found.comparison is not None and found.comparison.ratios) else None


def _key(run: ResolvedRun) -> str:
    """Of model shape, mode and devices; what tuning changes itself is not in it."""
    config = run.config
    if CHECKPOINTING in config.options:
        config = config.replace(options={**config.options, CHECKPOINTING: False})
    shape = model_shape(dataclasses.replace(run, config=config))
    facts = [shape, mode_name(run), run.choice.engine, config.sync_every, sorted(device.uuid for device in run.devices)]
    return hashlib.sha256(json.dumps(facts).encode("utf-8")).hexdigest()[:32]


def _read(file: Path) -> dict[str, _Entry]:
    try:
        return dict(read_record(_Document, require_format(read_json(file), file, FORMAT, VERSION)).tuned)
    except (OSError, RankdeckError, RecordError):
        return {}
