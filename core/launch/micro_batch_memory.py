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
from core.config.batch import DEFAULT_MICRO_BATCH, Batch
from core.errors import RankdeckError
from core.files.atomic import read_json, require_format, write_atomic
from core.launch.mode import DEEPSPEED
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
from core.recipes.manifest import recipe_defaults
from core.records import RecordError, Whole, read_record

FILE: Final = "micro-batches.json"
FORMAT: Final = "rankdeck-micro-batches"
VERSION: Final = 1
_MOST_ENTRIES: Final = 1000
_SHAPE: Final = ("seq_len", "precision", "zero_stage", "offload_optimizer", "offload_parameters")
"""Settings that memory depends on, besides the recipe's own and the mode."""


@dataclass(frozen=True, slots=True)
class _Document:
    format: str
    version: Whole
    micro_batches: dict[str, Whole] = field(default_factory=dict)


def remember(file: Path, run: ResolvedRun, micro_batch: int, ranks: Collection[int]) -> None:
    """Keeps the micro-batch to which `run` came when memory ran out on these ranks' devices."""
    known = _read(file)
    for rank in ranks:
        known.pop(key := _key(run, run.devices[rank]), None)  # the newest entries stand last
        known[key] = micro_batch
    newest = dict(list(known.items())[-_MOST_ENTRIES:])
    document = {"format": FORMAT, "version": VERSION, "micro_batches": newest}
    try:
        write_atomic(file, json.dumps(document, indent=1) + "\n")
    except (OSError, RankdeckError):
        return


def remembered_batch(file: Path, run: ResolvedRun) -> Batch | None:
    """The largest batch that is not known to be too large; None where that is the run's own."""
    if run.recipe.self_contained or names_its_own_batch(run):
        return None
    known = _read(file)
    most = min((known[key] for device in run.devices if (key := _key(run, device)) in known), default=run.batch.micro)
    batch: Batch | None = run.batch
    while batch is not None and batch.micro > most:
        batch = batch.halved()
    return None if batch == run.batch else batch


def as_remembered(file: Path, run: ResolvedRun) -> ResolvedRun:
    """`run` in micro-batches that have fitted before, unless a person has chosen others; with a note if there are."""
    batch = remembered_batch(file, run)
    if batch is None:
        return run
    notes, kept = (*run.device_notes, memory_note(run, batch)), run
    if not is_chosen(run):
        config = in_micro_batches(run.config, run.batch, batch.micro)
        kept = resolve_on(config, run.recipe, run.devices, run.platform)
    return dataclasses.replace(kept, device_notes=notes)


def memory_note(run: ResolvedRun, batch: Batch) -> str:
    """What a person should know before a run for which `batch` is remembered."""
    fitted = f"Micro-batch {batch.micro} × accumulation {batch.accumulation}"
    own = f"{run.batch.micro} × {run.batch.accumulation}"
    if is_chosen(run):
        return (
            f"Memory ran out with more than micro-batch {batch.micro} when this model was last trained on this device. "
            f"The run keeps your {own}. {fitted} fitted, with the same global batch."
        )
    return f"{fitted} instead of {own}: memory ran out with more when this model was last trained on this device."


def is_chosen(run: ResolvedRun) -> bool:
    """Whether a person has chosen the micro-batch: it is not the recipe's own."""
    size = run.config.batch_size
    return size is not None and size != recipe_defaults(run.recipe).get("batch_size", DEFAULT_MICRO_BATCH)


def in_micro_batches(config: RunConfig, batch: Batch, micro_batch: int) -> RunConfig:
    """The same run in micro-batches of another size; accumulation makes up for it."""
    return config.replace(batch_size=micro_batch, grad_accum_steps=batch.micro * batch.accumulation // micro_batch)


def names_its_own_batch(run: ResolvedRun) -> bool:
    """Whether DeepSpeed's settings are the person's own: they may name the micro-batch."""
    return run.choice.engine == DEEPSPEED and run.config.deepspeed_config is not None


def _key(run: ResolvedRun, device: Device) -> str:
    shape = [getattr(run.config, name) for name in _SHAPE]
    model = [run.config.recipe, sorted(run.config.options.items()), *shape, run.mode.value, run.choice.engine]
    return hashlib.sha256(json.dumps([*model, device.uuid], default=str).encode()).hexdigest()[:32]


def _read(file: Path) -> dict[str, int]:
    try:
        return dict(read_record(_Document, require_format(read_json(file), file, FORMAT, VERSION)).micro_batches)
    except (OSError, RankdeckError, RecordError):
        return {}
