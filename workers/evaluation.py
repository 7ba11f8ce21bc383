"""The validation loss: the same samples every time, and no generator moves because of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from workers import random_state
from workers.batches import Indices
from workers.precision import Precision
from workers.strategies import Strategy


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Measures a model on held-out samples.

    Attributes:
        samples: Held-out samples there are.
        limit: Samples measured at most, spread evenly over them.
        micro_batch: Samples at once.
        batch: CPU tensors of samples by their indices.
        loss: Mean loss of a model over such a batch.
        precision: The forward pass's format.
    """

    samples: int
    limit: int
    micro_batch: int
    batch: Callable[[Indices], Any]
    loss: Callable[[nn.Module, Any], Tensor]
    precision: Precision

    def measure(self, model: nn.Module, strategy: Strategy) -> float:
        """The mean loss over the samples, shared out among the ranks of the lane and reduced over them.

        Returns:
            The loss; NaN when no sample is held out.
        """
        chosen = np.unique(np.linspace(0, self.samples - 1, min(self.samples, self.limit)).astype(np.int64))
        size, rank = strategy.lane_size, strategy.lane_rank
        share = chosen[len(chosen) * rank // size : len(chosen) * (rank + 1) // size]
        training = model.training
        with random_state.untouched(strategy.place.device), torch.no_grad():
            model.eval()
            try:
                total = self._total(model, share, strategy.place.device)
            finally:
                model.train(training)
        loss_sum, count = strategy.total([total, float(len(share))])
        return loss_sum / count if count else float("nan")

    def _total(self, model: nn.Module, share: Indices, device: torch.device) -> float:
        total = torch.zeros((), dtype=torch.float64, device=device)
        for first in range(0, len(share), self.micro_batch):
            indices = share[first : first + self.micro_batch]
            with self.precision.forward():
                loss = self.loss(model, to_device(self.batch(indices), device))
            total += loss.double() * len(indices)
        return float(total.item())


def to_device(batch: Any, device: torch.device) -> Any:
    """Tensors, and tuples, lists and dicts of them, on `device`; other values as they are."""
    if isinstance(batch, Tensor):
        return batch if device.type == "cpu" else batch.pin_memory().to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
