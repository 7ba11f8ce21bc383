"""A rank's part of a generation: what it writes, and how it comes back from it.

Which of weights and optimizer state a rank writes is the strategy's business; the state of its generators, its
place in the data and its counters every rank writes itself (`rank<r>.safetensors`). Optimizer state is keyed by the
parameter's number in the optimizer's groups, whole or in shards, so any mode can read what another wrote.

The run host makes the parts a generation by writing the manifest last (`core.generations`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn
from torch.optim import Optimizer

from core.errors import StateFileError
from core.fault_points import reach
from core.files import sha256_file
from core.protocol import StagedFile
from workers import random_state, tensor_files
from workers.strategies import Strategy, optimizer_state

MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class Part:
    """A rank's part of a generation, in memory that training does not touch.

    Attributes:
        step: Optimizer steps behind it.
        files: Tensors and values by file name.
    """

    step: int
    files: Mapping[str, tuple[Mapping[str, torch.Tensor], Mapping[str, Any] | None]] = field(default_factory=dict)


def rank_file(rank: int) -> str:
    """The file with a rank's own state."""
    return f"rank{rank}.safetensors"


def take_part(
    strategy: Strategy, model: nn.Module, optimizer: Optimizer, step: int, counters: Mapping[str, Any]
) -> Part:
    """Copies this rank's part out of the live objects.

    Args:
        strategy: Says what this rank writes.
        model: The bare model, not the wrapped one.
        optimizer: As the strategy made it.
        step: Optimizer steps done.
        counters: The trainer's own state; JSON holds it.
    """
    names = strategy.files()
    files: dict[str, tuple[Mapping[str, torch.Tensor], Mapping[str, Any] | None]] = {}
    if names.weights is not None:
        files[names.weights] = (tensor_files.snapshot(model.state_dict(keep_vars=True)), None)
    if names.optimizer is not None:
        files[names.optimizer] = _optimizer_part(optimizer)
    tensors, generators = random_state.capture(strategy.place.device)
    files[rank_file(strategy.place.rank)] = (tensors, {"generators": generators, "counters": dict(counters)})
    return Part(step, files)


def write_part(folder: Path, part: Part) -> list[StagedFile]:
    """Writes, syncs and hashes the files of a part.

    Raises:
        OSError: Disk full, no permission.
    """
    staged = []
    for name, (tensors, values) in part.files.items():
        staged.append(tensor_files.write(folder / name, tensors, values))
    reach("before_staged", part.step)
    return staged


def load_part(folder: Path, strategy: Strategy, model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """Puts a generation's state into the live objects.

    Args:
        folder: The generation's.
        strategy: Says which files this rank reads.
        model: The bare model, on its device.
        optimizer: As the strategy made it over `model`'s parameters.

    Returns:
        The trainer's counters: this rank's own, or rank 0's for a rank that was not there before.

    Raises:
        StateFileError: A file is missing, damaged, or fits another model.
    """
    reader = _Reader(folder)
    weights, optimizer_parts = strategy.sources()
    load_weights(reader.path(weights), model, reader=reader)
    state: dict[int, dict[str, Any]] = {}
    groups: list[dict[str, Any]] = []
    for path in reader.paths(optimizer_parts):
        tensors, values = reader.read(path)
        groups = values["groups"]
        for name, value in {**values["scalars"], **tensors}.items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = value
    _load_optimizer(optimizer, state, groups, folder)
    own = folder / rank_file(strategy.place.rank)
    tensors, values = reader.read(own if own.exists() else folder / rank_file(0))
    if own.exists():
        random_state.restore(tensors, values["generators"], strategy.place.device)
    counters: dict[str, Any] = values["counters"]
    return counters


def load_weights(path: Path, model: nn.Module, reader: _Reader | None = None) -> None:
    """Puts the weights of a file into a model.

    Raises:
        StateFileError: The file cannot be read or fits another model.
    """
    tensors, _ = (reader or _Reader(path.parent)).read(path)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise StateFileError(
            f"The weights in {path} do not fit this model ({str(error).splitlines()[-1].strip()}).",
            "Resume with the recipe and the model options the run was started with.",
        ) from error


class _Reader:
    """Reads a generation's files and compares them with its manifest on the way."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hashes = _manifest_hashes(folder)

    def path(self, names: Sequence[str]) -> Path:
        return next(iter(self.paths(names)))

    def paths(self, patterns: Sequence[str]) -> Iterable[Path]:
        for pattern in patterns:
            found = sorted(self._folder.glob(pattern))
            if found:
                return found
        raise StateFileError(
            f"The generation in {self._folder} has no {patterns[0]}.",
            "Resume from an earlier generation: move this one's folder away.",
        )

    def read(self, path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        expected = self._hashes.get(path.name)
        if expected is not None and path.is_file() and sha256_file(path) != expected:
            raise StateFileError(
                f"{path} is not what was committed: its SHA-256 differs from the manifest's.",
                "Resume from an earlier generation: move this one's folder away.",
            )
        return tensor_files.read(path)


def _manifest_hashes(folder: Path) -> dict[str, str]:
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        rows = files if isinstance(files, list) else [{"name": name, **row} for name, row in files.items()]
        return {row["name"]: row["sha256"] for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateFileError(
            f"{path} cannot be read ({error}).", "Resume from an earlier generation: move this one's folder away."
        ) from error


def _optimizer_part(optimizer: Optimizer) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """State of the parameters that this rank's optimizer holds, named "<number>.<key>"."""
    held = optimizer_state(optimizer)
    tensors: dict[str, torch.Tensor] = {}
    scalars: dict[str, Any] = {}
    groups = []
    number = 0
    for group in optimizer.param_groups:
        first = number
        for parameter in group["params"]:
            for key, value in held.get(parameter, {}).items():
                kept = tensors if isinstance(value, torch.Tensor) else scalars
                kept[f"{number}.{key}"] = value
            number += 1
        options = {key: value for key, value in group.items() if key != "params"}
        groups.append({**options, "params": list(range(first, number))})
    return tensor_files.snapshot(tensors), {"scalars": scalars, "groups": groups}


def _load_optimizer(
    optimizer: Optimizer, state: dict[int, dict[str, Any]], groups: list[dict[str, Any]], folder: Path
) -> None:
    sizes = [len(group["params"]) for group in groups]
    if sizes != [len(group["params"]) for group in optimizer.param_groups]:
        raise StateFileError(
            f"The optimizer state in {folder} is for other parameters than this model's.",
            "Resume with the recipe and the model options the run was started with.",
        )
    optimizer.load_state_dict({"state": state, "param_groups": groups})
