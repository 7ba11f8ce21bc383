"""The mean of tensors that separately trained copies have."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


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
