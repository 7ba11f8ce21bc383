"""Micro-batch memory: which micro-batch was left when memory ran out, by model and device, for the next start there.

A file beside the runs. It is a help and no record: one that cannot be read or written changes nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core.config import RunConfig
from core.config.batch import Batch
from core.errors import RankdeckError
from core.files.atomic import read_json, require_format, write_atomic
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
from core.records import RecordError, Whole, read_record

FILE: Final = "micro-batches.json"
FORMAT: Final = "rankdeck-micro-batches"
VERSION: Final = 1
_MOST_ENTRIES: Final = 1000


@dataclass(frozen=True, slots=True)
class _Document:
    format: str
    version: Whole
    micro_batches: dict[str, Whole] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RememberedBatch:
    """The batch that was left when memory ran out with this model on these devices.

    Attributes:
        batch: It, with the global batch of the run.
        is_chosen: A person has chosen the run's own micro-batch (`RunConfig.keep_micro_batch`).
    """

    batch: Batch
    own: Batch
    is_chosen: bool

    @property
    def note(self) -> str:
        fitted = f"Micro-batch {self.batch.micro} × accumulation {self.batch.accumulation}"
        own = f"{self.own.micro} × {self.own.accumulation}"
        if self.is_chosen:
            return (
                f"Memory ran out with more than micro-batch {self.batch.micro} when this model was last trained on "
                f"this device. The run keeps your {own}. {fitted} fitted, with the same global batch."
            )
        return f"{fitted} instead of {own}: memory ran out with more when this model was last trained on this device."


def remember(file: Path, run: ResolvedRun, micro_batch: int, ranks: Collection[int]) -> None:
    """Keeps the micro-batch to which `run` came when memory ran out on these ranks' devices."""
    known = _read(file)
    for rank in ranks:
        known.pop(key := _key(run.memory_shape, run.devices[rank]), None)  # the newest entries stand last
        known[key] = micro_batch
    newest = dict(list(known.items())[-_MOST_ENTRIES:])
    document = {"format": FORMAT, "version": VERSION, "micro_batches": newest}
    try:
        write_atomic(file, json.dumps(document, indent=1) + "\n")
    except (OSError, RankdeckError):
        return


def remembered_batch(file: Path, run: ResolvedRun) -> RememberedBatch | None:
    """The largest batch that is not known to be too large; None where that is the run's own."""
    if run.names_its_own_batch:
        return None
    known = _read(file)
    sizes = [known[key] for device in run.devices if (key := _key(run.memory_shape, device)) in known]
    batch: Batch | None = run.batch
    while batch is not None and batch.micro > min(sizes, default=batch.micro):
        batch = batch.halved()
    if batch is None or batch == run.batch:
        return None
    return RememberedBatch(batch, run.batch, run.config.keep_micro_batch)


def as_remembered(file: Path, run: ResolvedRun) -> ResolvedRun:
    """`run` in micro-batches that have fitted before, unless a person has chosen others; with a note if there are."""
    known = remembered_batch(file, run)
    if known is None:
        return run
    kept = run
    if not known.is_chosen:
        config = in_micro_batches(run.config, run.batch, known.batch.micro)
        kept = resolve_on(config, run.recipe, run.devices, run.platform)
    return dataclasses.replace(kept, device_notes=(*run.device_notes, known.note))


def in_micro_batches(config: RunConfig, batch: Batch, micro_batch: int) -> RunConfig:
    """The same run in micro-batches of another size; accumulation makes up for it."""
    return config.replace(batch_size=micro_batch, grad_accum_steps=batch.micro * batch.accumulation // micro_batch)


def _key(shape: tuple[object, ...], device: Device) -> str:
    return hashlib.sha256(json.dumps([*shape, device.uuid], default=str).encode()).hexdigest()[:32]


def _read(file: Path) -> dict[str, int]:
    try:
        return dict(read_record(_Document, require_format(read_json(file), file, FORMAT, VERSION)).micro_batches)
    except (OSError, RankdeckError, RecordError):
        return {}
