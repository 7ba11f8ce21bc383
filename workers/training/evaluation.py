"""Validation loss: always of the same samples, however they are cut, and without moving a random generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from workers.data.prepared import give_back_spare_memory
from workers.optim import seeding
from workers.optim.precision import Precision
from workers.strategies import Strategy
from workers.training.batches import Indices
from workers.training.session import Session
from workers.training.task import LossAndMetrics, Task
from workers.training.training_mode import evaluating

# Samples that an evaluation measures at most, where neither person nor recipe says how many.
MOST_SAMPLES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Measures a model on held-out samples.

    Attributes:
        samples: Held-out samples.
        limit: Samples measured at most, spread evenly over them.
        micro_batch: Samples of a pass; the choice of samples does not depend on it.
        batch: CPU tensors of samples by their indices.
        loss: Mean loss of a model over such a batch, or `LossAndMetrics`.
        precision: The forward pass's format.
    """

    samples: int
    limit: int
    micro_batch: int
    batch: Callable[[Indices], Any]
    loss: Callable[[nn.Module, Any], Tensor | LossAndMetrics]
    precision: Precision

    @classmethod
    def of(cls, task: Task, session: Session, precision: Precision) -> Evaluation | None:
        """The task's evaluation in micro-batches of the current size; None where nothing is measured or held out."""
        held_out, config, micro_batch = session.data.val_samples, session.config, session.batch.micro
        if task.val_batch is None or held_out < 1:
            return None
        limit = config.val_samples or task.val_samples or MOST_SAMPLES
        return cls(held_out, limit, micro_batch, task.val_batch, task.loss, precision)

    def measure(self, model: nn.Module, strategy: Strategy) -> tuple[float, dict[str, float]]:
        """The mean loss over all samples (NaN for none), and the other metrics with `val_` before their names.

        Samples are spread over the ranks of the replica group.
        """
        spread = np.linspace(0, self.samples - 1, min(self.samples, self.limit)).astype(np.int64)
        chosen = spread[np.diff(spread, prepend=-1) > 0]  # not np.unique, which loads numpy.ma
        size, rank = strategy.group_size, strategy.group_rank
        share = chosen[len(chosen) * rank // size : len(chosen) * (rank + 1) // size]
        with seeding.untouched(strategy.place.device), torch.no_grad(), evaluating(model):
            rounds = -(-len(chosen) // (size * self.micro_batch)) + 1 if strategy.forward_is_collective else 1
            totals = self._totals(model, share, strategy.place.device, rounds)
        count, *sums = strategy.total([float(len(share)), *totals.values()])
        means = {name: sum_ / count if count else float("nan") for name, sum_ in zip(totals, sums, strict=True)}
        return means.pop("loss"), {f"val_{name}": mean for name, mean in means.items()}

    def _totals(self, model: nn.Module, share: Indices, device: torch.device, rounds: int) -> Mapping[str, float]:
        """Sums of all metrics by name, over at least `rounds` passes.

        A collective forward needs all ranks, and a rank without a share needs the metrics' names.
        """
        totals: dict[str, Tensor] = {}
        parts = [share[first : first + self.micro_batch] for first in range(0, len(share), self.micro_batch)]
        idle = np.zeros(1, dtype=np.int64)
        for part in [*parts, *[share[:0]] * (rounds - len(parts))]:
            with self.precision.forward():
                returned = LossAndMetrics.of(
                    self.loss(model, to_device(self.batch(part if len(part) else idle), device))
                )
            for name, metric in returned.metrics.items():
                totals[name] = totals.get(name, 0) + metric.double() * len(part)
            if rounds > 1 and device.type == "cpu":
                # Gathered weights leave holes in each pass, over 100 MiB in an evaluation (docs/decisions/0025).
                give_back_spare_memory()
        return {name: float(totals[name]) for name in sorted(totals)}


def to_device(batch: Any, device: torch.device) -> Any:
    """Move tensors, and tuples, lists and dicts of them, to `device`; other values stay."""
    if isinstance(batch, Tensor):
        return batch if device.type == "cpu" else batch.pin_memory().to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
