"""Parts of tensors: how a state that is spread over ranks is written by each and read back by any number of others.

Every way of sharding that is used here gives a rank a contiguous run of a tensor's elements in row-major order:
FSDP2 shards the first dimension, DeepSpeed cuts flattened buffers, ZeroRedundancyOptimizer hands out whole tensors.
So one description, *elements from `start` on of a tensor of this shape*, covers them all, and a reader needs to know
neither the mode nor the number of ranks that wrote a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core.errors import StateFileError


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive elements of a tensor.

    Attributes:
        values: The elements, shape (n,).
        start: Where they begin in the flattened tensor.
        shape: The whole tensor's shape.
    """

    values: Tensor
    start: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StatePart:
    """One file of a rank's part of a generation.

    Attributes:
        name: File name: `weights….safetensors`, `optimizer….safetensors`, or what else a mode needs to go on.
        tensors: Whole tensors and pieces by their canonical names: a weight's name in the model's `state_dict`, an
            optimizer's "<parameter number>.<key>".
        values: Plain values that belong to them.
    """

    name: str
    tensors: Mapping[str, Tensor | Piece]
    values: Mapping[str, Any]


def describe(tensors: Mapping[str, Tensor | Piece]) -> dict[str, list[Any]]:
    """What a file's metadata says of the pieces in it: name → [start, shape]."""
    return {name: [item.start, list(item.shape)] for name, item in tensors.items() if isinstance(item, Piece)}


def bare(tensors: Mapping[str, Tensor | Piece]) -> dict[str, Tensor]:
    """The tensors to write."""
    return {name: item.values if isinstance(item, Piece) else item for name, item in tensors.items()}


def join(name: str, pieces: Iterable[Piece]) -> Tensor:
    """The whole tensor.

    Raises:
        StateFileError: An element is missing, or pieces contradict each other.
    """
    ordered = sorted(pieces, key=lambda piece: piece.start)
    first = ordered[0]
    whole = torch.empty(math.prod(first.shape), dtype=first.values.dtype)
    end = 0
    for piece in ordered:
        stop = piece.start + piece.values.numel()
        if piece.shape != first.shape or piece.start > end or stop > whole.numel():
            end = -1
            break
        whole[piece.start : stop] = piece.values.reshape(-1)
        end = max(end, stop)
    if end != whole.numel():
        raise StateFileError(
            f"The pieces of {name} do not make a whole of shape {list(first.shape)}.",
            "Resume from an earlier generation: move this one's folder away.",
        )
    return whole.reshape(first.shape)
