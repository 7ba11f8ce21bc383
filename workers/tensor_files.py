"""Tensors and plain values in safetensors files: nothing is pickled, so nothing read can run code.

Plain values travel as JSON in the file's metadata. Weights that share memory (tied embeddings) are written once
and named in the metadata.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from core.errors import StateFileError

_VALUES_KEY: Final = "rankdeck"
_TIED_KEY: Final = "tied"


def snapshot(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies on the CPU that later training steps do not touch; contiguous, with sharing between them kept."""
    copies: dict[tuple[Any, ...], torch.Tensor] = {}
    result = {}
    for name, tensor in tensors.items():
        key = _memory(tensor)
        if key not in copies:
            copies[key] = tensor.detach().to("cpu", copy=True).contiguous()
        result[name] = copies[key]
    return result


def write(path: Path, tensors: Mapping[str, torch.Tensor], values: Mapping[str, Any] | None = None) -> None:
    """Writes a file and waits until it is on the disk.

    Args:
        path: Where; overwritten.
        tensors: CPU tensors.
        values: What JSON can hold.

    Raises:
        OSError: Disk full, no permission.
    """
    first: dict[tuple[Any, ...], str] = {}
    tied: dict[str, str] = {}
    unique = {}
    for name in sorted(tensors):
        original = first.setdefault(_memory(tensors[name]), name)
        if original == name:
            unique[name] = tensors[name]
        else:
            tied[name] = original
    metadata = {"format": "pt"}
    if tied:
        metadata[_TIED_KEY] = json.dumps(tied, sort_keys=True)
    if values is not None:
        metadata[_VALUES_KEY] = json.dumps(dict(values), sort_keys=True)
    try:
        save_file(unique, path, metadata=_ordered(metadata))
    except SafetensorError as error:
        raise OSError(str(error)) from error
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors (on the CPU) and values of a file.

    Raises:
        StateFileError: The file is missing or not what `write` made.
    """
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            names: list[str] = list(file.keys())
            tensors = {name: file.get_tensor(name) for name in names}
        for name, original in json.loads(metadata.get(_TIED_KEY, "{}")).items():
            tensors[name] = tensors[original]
        values = json.loads(metadata.get(_VALUES_KEY, "{}"))
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise StateFileError(
            f"{path} cannot be read ({error}).", "Resume from an earlier generation: move this one's folder away."
        ) from error
    return tensors, values


def _memory(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Equal for tensors that are the same numbers in the same memory; empty ones are never shared."""
    if tensor.numel() == 0:
        return (id(tensor),)
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), str(tensor.device))


def _ordered(metadata: Mapping[str, str]) -> dict[str, str]:
    return {key: metadata[key] for key in sorted(metadata)}
