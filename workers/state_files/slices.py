"""Slices of tensors: state that is spread over ranks, written by each and read back by any number of others.

Every way of sharding here gives a rank a contiguous run of a tensor's elements in row-major order: FSDP2 shards the
first dimension, DeepSpeed cuts flattened buffers, ZeroRedundancyOptimizer hands out whole tensors. So *elements from
`start` on of a tensor of this shape* covers them all, and a reader needs neither the mode nor the number of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core.errors import StateFileError


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """Consecutive elements of a tensor: `values` of shape (n,), from element `start` of the flattened `shape` on."""

    values: Tensor
    start: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StatePart:
    """One file of a rank's part of a checkpoint.

    Attributes:
        name: File name: `weights….safetensors`, `optimizer….safetensors`, or another that a mode needs.
        tensors: Whole tensors and slices by their canonical names: a weight's name in the model's `state_dict`, an
            optimizer's "<parameter number>.<key>".
        values: Plain values that belong to them.
    """

    name: str
    tensors: Mapping[str, Tensor | TensorSlice]
    values: Mapping[str, Any]


def describe(tensors: Mapping[str, Tensor | TensorSlice]) -> dict[str, list[Any]]:
    """A file's metadata on the slices in it: name → [start, shape]."""
    return {name: [item.start, list(item.shape)] for name, item in tensors.items() if isinstance(item, TensorSlice)}


def bare(tensors: Mapping[str, Tensor | TensorSlice]) -> dict[str, Tensor]:
    return {name: item.values if isinstance(item, TensorSlice) else item for name, item in tensors.items()}


def mean(tensors: Sequence[Tensor]) -> Tensor:
    """The mean of floating-point tensors of one shape, in double precision, in their own dtype.

    Integer and boolean tensors (counters, masks) have no meaningful mean: the first is taken.
    """
    first = tensors[0]
    if not first.is_floating_point():
        return first
    total = torch.zeros(first.shape, dtype=torch.float64)
    for tensor in tensors:
        total += tensor.double()
    return (total / len(tensors)).to(first.dtype)


def join(name: str, slices: Iterable[TensorSlice]) -> Tensor:
    """The whole tensor; raises `StateFileError` where an element is missing or slices contradict each other."""
    ordered = sorted(slices, key=lambda part: part.start)
    first = ordered[0]
    whole = torch.empty(math.prod(first.shape), dtype=first.values.dtype)
    end = 0
    for part in ordered:
        stop = part.start + part.values.numel()
        if part.shape != first.shape or part.start > end or stop > whole.numel():
            end = -1
            break
        whole[part.start : stop] = part.values.reshape(-1)
        end = max(end, stop)
    if end != whole.numel():
        raise StateFileError(
            f"The pieces of {name} do not make a whole of shape {list(first.shape)}.",
            "Resume from an earlier checkpoint: move this one's folder away.",
        )
    return whole.reshape(first.shape)
