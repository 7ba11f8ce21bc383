"""A rank's part of a checkpoint: the files that it writes, and how they are loaded.

The replica decides which weights and optimizer state a rank writes (`strategies.replica`); every rank writes its random
generators, its position in the data and its counters (`rank<r>.safetensors`). Weights have their canonical names and
optimizer state is keyed by the parameter's number, whole or in slices, so any mode reads what another wrote. The run
host makes the parts a checkpoint by writing the manifest last (`core.checkpoints.store`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from core.config.mode import Mode
from core.fault_points import reach
from core.protocol.messages import StagedFile
from workers.optim import seeding
from workers.state_files import safetensors_files
from workers.state_files.saved_state import AVERAGE, SavedState
from workers.state_files.slices import bare, describe
from workers.strategies import Replica, Strategy

TensorsAndValues = tuple[Mapping[str, torch.Tensor], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Part:
    """A rank's part of a checkpoint, in memory that training does not touch: tensors and values by file name."""

    step: int
    files: Mapping[str, TensorsAndValues] = field(default_factory=dict)


def rank_file(rank: int) -> str:
    return f"rank{rank}.safetensors"


def take_part(strategy: Strategy, replica: Replica, step: int, counters: Mapping[str, Any]) -> Part:
    """Copy this rank's part out of the live objects; `counters` are JSON values."""
    files: dict[str, TensorsAndValues] = {}
    for part in replica.parts():
        values = {**part.values, "pieces": described} if (described := describe(part.tensors)) else part.values
        files[part.name] = (safetensors_files.snapshot(bare(part.tensors)), values or None)
    tensors, generators = seeding.capture(strategy.place.device)
    files[rank_file(strategy.place.rank)] = (tensors, {"generators": generators, "counters": dict(counters)})
    return Part(step, files)


def write_part(folder: Path, part: Part) -> list[StagedFile]:
    """Write, sync and hash the files of a part."""
    staged = [safetensors_files.write(folder / name, *contents) for name, contents in part.files.items()]
    reach("before_staged", part.step)
    return staged


def saved_counters(folder: Path) -> dict[str, Any]:
    counters: dict[str, Any] = safetensors_files.OpenFile(folder / rank_file(0)).values["counters"]
    return counters


def load_part(folder: Path, strategy: Strategy, replica: Replica, copy: str = "") -> dict[str, Any]:
    """Load a checkpoint; raise `StateFileError` if it is damaged or of another model or optimizer.

    Random generators continue where as many ranks train in as many replica groups as before; else their state means
    nothing here.

    Args:
        folder: The checkpoint's.
        strategy: This rank's.
        replica: Takes up its share of weights and optimizer state.
        copy: The rank whose copy is taken where each rank wrote its own (`SavedState`); empty is the strategy's choice.

    Returns:
        The trainer's counters as saved with these weights: of the rank whose copy it is, else this rank's own, or rank
        0's for a rank that was not there before.
    """
    saved = SavedState(folder, copy or strategy.copy)
    replica.load(saved)
    rank, own = strategy.place.rank, rank_file(strategy.place.rank)
    whose = rank_file(int(copy)) if copy.isdecimal() else own
    if saved.has(own) and copy in ("", str(rank)):
        tensors, values = saved.read(own)
        if _as_before(values["counters"], strategy):
            seeding.restore(tensors, values["generators"], strategy.place.device)
    else:
        _, values = saved.read(whose if saved.has(whose) and copy != AVERAGE else rank_file(0))
    counters: dict[str, Any] = values["counters"]
    return counters


def _as_before(counters: Mapping[str, Any], strategy: Strategy) -> bool:
    world = counters.get("world_size", strategy.place.world_size)
    groups = Mode.read(counters.get("mode", strategy.name)).replica_groups(world)
    return bool(world == strategy.place.world_size and groups == strategy.replica_groups)
