"""Tensors and plain values in safetensors files: nothing is pickled, so nothing read can run code.

Plain values are JSON in the file's metadata. Weights that share memory (tied embeddings) are written once.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open

from core.errors import StateFileError
from core.fault_points import reach
from core.protocol.messages import StagedFile

_VALUES_KEY: Final = "rankdeck"
_TIED_KEY: Final = "tied"
_DTYPE_NAMES: Final = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def snapshot(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies on the CPU that later training steps do not touch; contiguous, with sharing between them kept."""
    # Tied weights (an embedding that is also the output layer) are one memory under two names. Copied twice, they would
    # be two tensors after a resume.
    copies: dict[tuple[Any, ...], torch.Tensor] = {}
    result = {}
    for name, tensor in tensors.items():
        key = _memory(tensor)
        if key not in copies:
            copies[key] = tensor.detach().to("cpu", copy=True).contiguous()
        result[name] = copies[key]
    return result


def write(path: Path, tensors: Mapping[str, torch.Tensor], values: Mapping[str, Any] | None = None) -> StagedFile:
    """Write a file and wait until it is on the disk. The same tensors and values make the same bytes.

    Written by hand because the safetensors package orders metadata at random and copies every tensor; read by the
    package. `values` are JSON values.
    """
    unique, tied = _split_tied(tensors)
    metadata = {"format": "pt"}
    if values is not None:
        metadata[_VALUES_KEY] = json.dumps(dict(values), sort_keys=True)
    if tied:
        metadata[_TIED_KEY] = json.dumps(tied, sort_keys=True)
    # Widest numbers first, so that every tensor starts at a multiple of its own element's size and can be read where
    # it lies. Format: https://huggingface.co/docs/safetensors/index#format
    order = sorted(unique, key=lambda name: (-unique[name].element_size(), name))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in order:
        begin, end = end, end + unique[name].nbytes
        header[name] = {
            "dtype": _DTYPE_NAMES[unique[name].dtype],
            "shape": list(unique[name].shape),
            "data_offsets": [begin, end],
        }
    head = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    # The format pads with spaces, so that the data begin at a multiple of 8.
    head += b" " * (-len(head) % 8)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        beginning: list[bytes | memoryview] = [struct.pack("<Q", len(head)), head]
        for number, data in enumerate((*beginning, *(_tensor_bytes(unique[name]) for name in order))):
            if number == len(order) // 2 + 1:
                reach("weights_write")
            digest.update(data)
            file.write(data)
        # The manifest that makes these files a checkpoint is written last (docs/decisions/0002). Without fsync a power
        # cut could keep the manifest and lose what it names.
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    return StagedFile(path.name, size, digest.hexdigest())


class OpenFile:
    """A file whose tensors are read one at a time; between reads it is closed, so that it can be removed."""

    def __init__(self, path: Path) -> None:
        # Not held open: the reader maps the file into memory, and Windows deletes no file that is mapped.
        self._path = path
        with _opened(path) as (file, tied, values):
            self._tied = tied
            self.names = frozenset((*file.keys(), *tied))
            self.values = values

    def tensor(self, name: str) -> torch.Tensor:
        with _opened(self._path) as (file, _, _):
            tensor: torch.Tensor = file.get_tensor(self._tied.get(name, name))
        return tensor


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors (on the CPU) and values of a file; tied names share one tensor. Raises `StateFileError`."""
    with _opened(path) as (file, tied, values):
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is not a mapping
        return tensors | {name: tensors[original] for name, original in tied.items()}, values


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, dict[str, str], dict[str, Any]]]:
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            yield file, json.loads(metadata.get(_TIED_KEY, "{}")), json.loads(metadata.get(_VALUES_KEY, "{}"))
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise StateFileError(
            f"{path} cannot be read ({error}).", "Resume from an earlier checkpoint: move this one's folder away."
        ) from error


def _memory(tensor: torch.Tensor) -> tuple[Any, ...]:
    """A key that is equal for the same numbers in the same memory; empty tensors are never shared."""
    if tensor.numel() == 0:
        return (id(tensor),)
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), str(tensor.device))


def _split_tied(tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Tensors without repetition, and the names that share another's memory."""
    first: dict[tuple[Any, ...], str] = {}
    unique: dict[str, torch.Tensor] = {}
    tied: dict[str, str] = {}
    for name in sorted(tensors):
        original = first.setdefault(_memory(tensors[name]), name)
        if original == name:
            unique[name] = tensors[name].detach().contiguous()
        else:
            tied[name] = original
    return unique, tied


def _tensor_bytes(tensor: torch.Tensor) -> memoryview:
    if tensor.numel() == 0:
        return memoryview(b"")
    array: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(array)
