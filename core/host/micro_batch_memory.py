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

from core.config.batch import Batch
from core.errors import RankdeckError
from core.files.atomic import read_json, require_format, write_atomic
from core.host.work_plan import in_micro_batches
from core.launch.mode import DEEPSPEED
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
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


def as_remembered(file: Path, run: ResolvedRun) -> ResolvedRun:
    """`run` in the largest micro-batches that are not known to be too large, with a note if they are not its own."""
    if run.recipe.self_contained or names_its_own_batch(run):
        return run
    known = _read(file)
    most = min((known[key] for device in run.devices if (key := _key(run, device)) in known), default=run.batch.micro)
    batch: Batch | None = run.batch
    while batch is not None and batch.micro > most:
        batch = batch.halved()
    if batch is None or batch == run.batch:
        return run
    note = (
        f"Micro-batch {batch.micro} × accumulation {batch.accumulation} instead of {run.batch.micro} × "
        f"{run.batch.accumulation}: memory ran out with more when this model was last trained on this device."
    )
    smaller = resolve_on(in_micro_batches(run.config, run.batch, batch.micro), run.recipe, run.devices, run.platform)
    return dataclasses.replace(smaller, device_notes=(*run.device_notes, note))


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
