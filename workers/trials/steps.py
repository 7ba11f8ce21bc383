"""Times real optimizer steps on all ranks together: data, forward and backward passes, all-reduce, update."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

import numpy as np
import torch

from core.config.batch import Batch
from workers.optim.precision import Precision
from workers.strategies import Replica, Strategy
from workers.strategies.local_sgd import LocalSgdReplica
from workers.training.batches import Indices
from workers.training.evaluation import to_device
from workers.training.task import LossAndMetrics, StepSamples, Task

MOST_MICRO_BATCHES: Final = 2
"""Of a step that is timed. In a step with more of them the others take as long as the first ones."""
LEAST_STEPS: Final = 2
MOST_STEPS: Final = 200
LEAST_PAIRS: Final = 4
MOST_PAIRS: Final = 24
_ROUNDS: Final = 2


class Steps:
    """Steps of one task on one rank; all ranks of the replica group make equally many.

    Args:
        task: The recipe's.
        replica: Its model as the mode trains it.
        precision: Of the passes.
        strategy: How the work is shared.
        batch: Of the replica group.
        samples: How many the dataset has; steps begin again at the first when all were used.
        use: Called before each pass; makes the model's forward pass the one that is timed here.
        whole: All micro-batches of a step are made, however many.
    """

    def __init__(
        self,
        task: Task,
        replica: Replica,
        precision: Precision,
        strategy: Strategy,
        batch: Batch,
        samples: int,
        use: Callable[[], None] = lambda: None,
        *,
        whole: bool = False,
    ) -> None:
        self._samples = max(1, samples)
        self._task, self._replica, self._precision = task, replica, precision
        self._strategy, self._batch = strategy, batch
        self._use, self._whole = use, whole
        self._made = batch.accumulation if whole else min(MOST_MICRO_BATCHES, batch.accumulation)
        self._number = 0

    def warm_up(self) -> None:
        """Untimed steps: memory is taken, DDP orders its buckets, the optimizer makes its state.

        They have one micro-batch, unless whole ones are made: DeepSpeed counts micro-batches itself.
        """
        for _ in range(self._replica.passes_to_settle + 1):
            if self._whole:
                self.step()
                continue
            self._pass(self._own_samples()[-self._batch.micro :], last=True)
            self._replica.update()

    def measure(self, seconds: float) -> float:
        """Seconds of a whole step, the median of steps that last about `seconds` in all."""
        first_s, whole_s = self.step()
        count = self.count(first_s, seconds, MOST_STEPS)
        return statistics.median([whole_s, *(self.step()[1] for _ in range(count - 1))])

    def count(self, step_s: float, seconds: float, most: int) -> int:
        """How many steps last about `seconds`; the same on all ranks of the replica group."""
        return min(most, max(LEAST_STEPS, round(seconds / max(1e-6, self.mean(step_s)))))

    def mean(self, seconds: float) -> float:
        """The mean over the ranks of the replica group, so that all of them count the same."""
        return self._strategy.total([seconds])[0] / self._strategy.group_size

    def measure_round(self, barrier: Callable[[], None]) -> float | None:
        """Seconds of a round that synchronises independent ranks, none of them late; None without rounds."""
        replica = self._replica
        if not isinstance(replica, LocalSgdReplica):
            return None
        replica.outer.start()
        times = []
        for _ in range(_ROUNDS):
            barrier()
            began = self._now()
            replica.outer.synchronise(1 / self._strategy.place.world_size)
            times.append(self._now() - began)
        return min(times)

    def step(self) -> tuple[float, float]:
        """Makes a step; its seconds, and those of one with all its micro-batches."""
        began = self._now()
        samples = self._own_samples()
        prepared, micro = self._now(), self._batch.micro
        for place in range(self._made - 1):
            self._pass(samples[place * micro : (place + 1) * micro], last=False)
        passed = self._now()
        self._pass(samples[-micro:], last=True)
        self._replica.update()
        ended = self._now()
        left_out = self._batch.accumulation - self._made
        one_s = (passed - prepared) / max(1, self._made - 1)
        return ended - began, ended - began + left_out * one_s

    def _own_samples(self) -> Indices:
        """The step's samples of this rank, after the recipe has made what it needs."""
        batch, strategy = self._batch, self._strategy
        numbers = np.arange(batch.global_, dtype=np.int64) + self._number * batch.global_
        numbers %= self._samples
        self._number += 1
        share = batch.micro * batch.accumulation
        own = numbers[strategy.group_rank * share : (strategy.group_rank + 1) * share]
        if self._task.before_step is not None:
            with torch.no_grad(), self._precision.forward():
                self._task.before_step(StepSamples(0, numbers, own))
        return own[: self._made * batch.micro]

    def _pass(self, indices: Indices, *, last: bool) -> None:
        self._use()
        with self._replica.micro_batch(last=last):
            inputs = to_device(self._task.batch(indices), self._strategy.place.device)
            with self._precision.forward():
                loss = LossAndMetrics.of(self._task.loss(self._replica.module, inputs)).loss
            self._replica.backward(loss / self._batch.accumulation, last=last)

    def _now(self) -> float:
        device = self._strategy.place.device
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()


def take_turns(own: Steps, found: Steps, seconds: float) -> tuple[list[float], list[float]]:
    """Seconds of whole steps of two batches that take turns, step by step, for about `seconds`.

    What slows the machine down for longer than a step slows both. Which of the two begins a pair changes from pair to
    pair, so that no drift decides.
    """
    own.step(), found.step()  # with caches and memory of the other one; not counted
    times = (own.step(), found.step())
    pair_s = own.mean(times[0][0] + times[1][0])
    pairs = min(MOST_PAIRS, max(LEAST_PAIRS, round(seconds / max(1e-6, pair_s))))
    own_s, found_s = [times[0][1]], [times[1][1]]
    for pair in range(1, pairs):
        both = ((own, own_s), (found, found_s))
        for steps, made in both if pair % 2 == 0 else both[::-1]:
            made.append(steps.step()[1])
    return own_s, found_s
