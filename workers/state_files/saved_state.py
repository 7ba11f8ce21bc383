"""Weights and optimizer state of a checkpoint, read whichever mode and number of ranks wrote it.

* whole: `weights.safetensors` (one device, DDP);
* in shards: `weights_shard<r>.safetensors`, whose tensors are whole or slices (`workers.state_files.slices`);
* as copies: `weights_rank<r>.safetensors`, one a rank that trained by itself.

Tensors are read one at a time, so that a model which fits no single device's memory can be taken up by ranks which each
keep their share of every tensor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from core.errors import StateFileError
from core.files.atomic import sha256_file
from core.held_files import read_utf8
from workers.optim.optimizer import Optimization
from workers.state_files import safetensors_files
from workers.state_files.slices import TensorSlice, join, mean

MANIFEST: Final = "manifest.json"
WEIGHTS: Final = "weights"
OPTIMIZER: Final = "optimizer"
AVERAGE: Final = "average"


class SavedState:
    """The weights and the optimizer state of one checkpoint; raises `StateFileError` for a missing or altered file.

    `copy`: the copy that is taken where each rank wrote its own: a rank's number, or "average" for the mean of all.
    """

    def __init__(self, folder: Path, copy: int | str = 0) -> None:
        self.folder = folder
        self._hashes = _manifest_hashes(folder)
        self._weights = self._open(WEIGHTS, copy)
        self._optimizer = self._open(OPTIMIZER, copy)

    # weights

    def weight_names(self) -> list[str]:
        return self._weights.names()

    def check_names(self, own: Iterable[str]) -> None:
        """Raise `StateFileError` where these are not the names of the saved weights."""
        odd = sorted(set(own) ^ set(self.weight_names()))
        if odd:
            raise _other_model(self.folder, f"only one of the two has {odd[0]}")

    def weight(self, name: str, shape: Sequence[int] | None = None) -> Tensor:
        """A whole weight by its canonical name, on the CPU; raises `StateFileError` for another `shape`."""
        whole = self._weights.tensor(name)
        if shape is not None and tuple(whole.shape) != tuple(shape):
            raise _other_model(self.folder, f"{name} has shape {list(whole.shape)}, not {list(shape)}")
        return whole

    def load_model(self, model: nn.Module) -> None:
        load_weights({name: self.weight(name) for name in self.weight_names()}, model, self.folder)

    # optimizer

    def optimizer_numbers(self) -> list[int]:
        """Numbers of the parameters for which there is state."""
        names = [*self._optimizer.names(), *self._optimizer.values["scalars"]]
        return sorted({int(name.partition(".")[0]) for name in names})

    def optimizer_state(self, number: int) -> dict[str, Any]:
        """A parameter's state: whole tensors and plain values by key."""
        prefix = f"{number}."
        scalars: dict[str, Any] = self._optimizer.values["scalars"]
        state = {name.removeprefix(prefix): value for name, value in scalars.items() if name.startswith(prefix)}
        for name in self._optimizer.names():
            if name.startswith(prefix):
                state[name.removeprefix(prefix)] = self._optimizer.tensor(name)
        return state

    def optimizer_groups(self, optimizer: Optimizer, optimization: Optimization) -> list[dict[str, Any]]:
        """The groups' options as saved; raises `StateFileError` for other parameters or another kind of optimizer."""
        values = self._optimizer.values
        groups: list[dict[str, Any]] = values["groups"]
        kind = values.get("kind", optimization.kind_name)
        if kind != optimization.kind_name:
            raise StateFileError(
                f"The run was trained with {kind} so far, and {optimization.kind_name} cannot use its state.",
                f"Resume with {kind}, or start a new run from its model.safetensors.",
                title="The optimizer is different",
            )
        if [len(group["params"]) for group in groups] != [len(group["params"]) for group in optimizer.param_groups]:
            raise StateFileError(
                f"The optimizer state in {self.folder} is for other parameters than this model's.",
                "Resume with the recipe and the model options the run was started with.",
            )
        return groups

    # files

    def _open(self, what: str, copy: int | str) -> _Files | _Average:
        if copy == AVERAGE and (paths := sorted(self.folder.glob(f"{what}_rank*.safetensors"))):
            return _Average([_Files([self._checked(path)]) for path in paths])
        for patterns in (f"{what}_rank{copy}", what, f"{what}_shard*", f"{what}_rank0"):
            found = sorted(self.folder.glob(f"{patterns}.safetensors"))
            if found:
                return _Files([self._checked(path) for path in found])
        raise StateFileError(
            f"The checkpoint in {self.folder} has no {what}.safetensors.",
            "Resume from an earlier checkpoint: move this one's folder away.",
        )

    def _checked(self, path: Path) -> Path:
        # Compared before a tensor is used: a damaged file names itself here, and not in a loss that is off.
        expected = self._hashes.get(path.name)
        if expected is not None and sha256_file(path) != expected:
            raise StateFileError(
                f"{path} is not what was committed: its SHA-256 differs from the manifest's.",
                "Resume from an earlier checkpoint: move this one's folder away.",
            )
        return path

    def read(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All of another file, compared with the manifest."""
        path = self.folder / name
        return safetensors_files.read(self._checked(path) if path.is_file() else path)

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()


class _Files:
    """Tensors that are spread over files; where they overlap, the first file counts."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = [safetensors_files.OpenFile(path) for path in paths]
        self.values = _merged_values([file.values for file in self._files])

    def names(self) -> list[str]:
        return sorted({name for file in self._files for name in file.names})

    def tensor(self, name: str) -> Tensor:
        slices = []
        for file in self._files:
            if name not in file.names:
                continue
            described = file.values.get("pieces", {}).get(name)
            # Whole: DDP's, or a parameter whose state ZeroRedundancyOptimizer keeps on one rank.
            if described is None:
                return file.tensor(name)
            slices.append(TensorSlice(file.tensor(name), described[0], tuple(described[1])))
        return join(name, slices)


class _Average:
    """The mean of ranks' copies; plain values are the first one's.

    An optimizer's count of its own steps is the highest: its moments are warmed up at least as far as those of the copy
    with the most steps.
    """

    def __init__(self, copies: Sequence[_Files]) -> None:
        self._copies = copies
        self.values = copies[0].values

    def names(self) -> list[str]:
        return sorted({name for copy in self._copies for name in copy.names()})

    def tensor(self, name: str) -> Tensor:
        tensors = [copy.tensor(name) for copy in self._copies if name in copy.names()]
        # Adam divides its moments by 1 - β^step (Kingma and Ba, arXiv 1412.6980, algorithm 1). With the mean of counts
        # the copy that is ahead would be corrected for a bias that it no longer has.
        return torch.stack(tensors).amax(0) if name.endswith(".step") else mean(tensors)


def _merged_values(all_values: Iterable[dict[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {"scalars": {}, "groups": []}
    for values in all_values:
        merged["scalars"].update(values.get("scalars", {}))
        merged["groups"] = values.get("groups", merged["groups"])
        if "kind" in values:
            merged["kind"] = values["kind"]
    return merged


def load_weights(tensors: dict[str, Tensor], model: nn.Module, source: Path) -> None:
    """Put weights into a model; raise `StateFileError` where they fit another one."""
    try:
        with torch.no_grad():
            model.load_state_dict(tensors)
    except RuntimeError as error:
        raise _other_model(source, str(error).splitlines()[-1].strip()) from error


def _other_model(source: Path, why: str) -> StateFileError:
    return StateFileError(
        f"The weights in {source} do not fit this model ({why}).",
        "Resume with the recipe and the model options the run was started with.",
    )


def _manifest_hashes(folder: Path) -> dict[str, str]:
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        files = json.loads(read_utf8(path))["files"]
        rows = files if isinstance(files, list) else [{"name": name, **row} for name, row in files.items()]
        return {row["name"]: row["sha256"] for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateFileError(
            f"{path} cannot be read ({error}).", "Resume from an earlier checkpoint: move this one's folder away."
        ) from error
