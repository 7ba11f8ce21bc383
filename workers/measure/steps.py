"""Real optimizer steps of a task, as the trainer makes them: data, forward and backward passes, all-reduce, update."""

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

# Of a step that is timed. In a step with more of them the others take as long as the first ones.
MOST_MICRO_BATCHES: Final = 2
LEAST_STEPS: Final = 2
MOST_STEPS: Final = 200
LEAST_PAIRS: Final = 4
MOST_PAIRS: Final = 24
_ROUNDS: Final = 2


class Passes:
    """Forward and backward passes of one task on one device.

    Args:
        task: The recipe's.
        replica: Its model as the mode trains it.
        precision: Of the passes.
        device: Of the model.
    """

    def __init__(self, task: Task, replica: Replica, precision: Precision, device: torch.device) -> None:
        self.task, self.replica, self.precision, self.device = task, replica, precision, device

    def prepare(self, numbers: Indices, own: Indices) -> None:
        """Let the recipe make the data of a step: rollouts."""
        if self.task.before_step is not None:
            with torch.no_grad(), self.precision.forward():
                self.task.before_step(StepSamples(0, numbers, own))

    def make(self, indices: Indices, *, last: bool = True, share: float = 1.0) -> None:
        """Make a pass over a micro-batch, whose loss counts as a share of the step's."""
        with self.replica.micro_batch(last=last):
            inputs = to_device(self.task.batch(indices), self.device)
            with self.precision.forward():
                loss = LossAndMetrics.of(self.task.loss(self.replica.module, inputs)).loss
            self.replica.backward(loss * share, last=last)

    def now(self) -> float:
        """Seconds, once the device has finished its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


class Steps:
    """Steps of one task on one rank; all ranks of the replica group make equally many.

    Args:
        passes: Of the task.
        batch: Of the replica group.
        samples: Of the dataset; steps begin again at the first when all were used.
        whole: All micro-batches of a step are made, however many.
    """

    def __init__(self, passes: Passes, strategy: Strategy, batch: Batch, samples: int, *, whole: bool = False) -> None:
        self._passes, self._strategy, self._batch, self._whole = passes, strategy, batch, whole
        self._samples = max(1, samples)
        self._made = batch.accumulation if whole else min(MOST_MICRO_BATCHES, batch.accumulation)
        self._number = 0

    def warm_up(self) -> None:
        """Make untimed steps: memory is taken, DDP orders its buckets, the optimizer makes its state.

        They have one micro-batch, unless whole ones are made: DeepSpeed counts micro-batches itself.
        """
        for _ in range(2):
            if self._whole:
                self.step()
                continue
            self._make(self._own_samples()[-self._batch.micro :], last=True)
            self._passes.replica.update()

    def measure(self, seconds: float) -> float:
        """Seconds of a whole step, the median of steps that last about `seconds` in all."""
        first_s, whole_s = self.step()
        count = min(MOST_STEPS, max(LEAST_STEPS, round(seconds / max(1e-6, self.mean(first_s)))))
        return statistics.median([whole_s, *(self.step()[1] for _ in range(count - 1))])

    def mean(self, seconds: float) -> float:
        """Mean over the ranks of the replica group, so that all of them count the same."""
        return self._strategy.total([seconds])[0] / self._strategy.group_size

    def measure_round(self, barrier: Callable[[], None]) -> float | None:
        """Seconds of a round that synchronises independent ranks, none of them late; None without rounds."""
        replica = self._passes.replica
        if not isinstance(replica, LocalSgdReplica):
            return None
        replica.outer.start()
        times = []
        for _ in range(_ROUNDS):
            barrier()
            began = self._passes.now()
            replica.outer.synchronise(1 / self._strategy.place.world_size)
            times.append(self._passes.now() - began)
        return min(times)

    def step(self) -> tuple[float, float]:
        """Make a step; return its seconds, and those of one with all its micro-batches."""
        now, micro = self._passes.now, self._batch.micro
        began = now()
        samples = self._own_samples()
        prepared = now()
        for place in range(self._made - 1):
            self._make(samples[place * micro : (place + 1) * micro], last=False)
        passed = now()
        self._make(samples[-micro:], last=True)
        self._passes.replica.update()
        ended = now()
        left_out = self._batch.accumulation - self._made
        one_s = (passed - prepared) / max(1, self._made - 1)
        return ended - began, ended - began + left_out * one_s

    def _make(self, indices: Indices, *, last: bool) -> None:
        self._passes.make(indices, last=last, share=1 / self._batch.accumulation)

    def _own_samples(self) -> Indices:
        """This rank's samples of the step, once the recipe has prepared it."""
        batch, rank = self._batch, self._strategy.group_rank
        numbers = np.arange(batch.global_, dtype=np.int64) + self._number * batch.global_
        numbers %= self._samples
        self._number += 1
        share = batch.micro * batch.accumulation
        own = numbers[rank * share : (rank + 1) * share]
        self._passes.prepare(numbers, own)
        return own[: self._made * batch.micro]


def take_turns(own: Steps, found: Steps, seconds: float) -> tuple[list[float], list[float]]:
    """Seconds of whole steps of two batches that take turns, step by step, for about `seconds`.

    What slows the machine down for longer than a step slows both. Which of the two begins a pair changes from pair to
    pair, so that no drift decides.
    """
    # With caches and memory of the other one; not counted.
    own.step(), found.step()
    times = (own.step(), found.step())
    pair_s = own.mean(times[0][0] + times[1][0])
    pairs = min(MOST_PAIRS, max(LEAST_PAIRS, round(seconds / max(1e-6, pair_s))))
    own_s, found_s = [times[0][1]], [times[1][1]]
    for pair in range(1, pairs):
        both = ((own, own_s), (found, found_s))
        for steps, made in both if pair % 2 == 0 else both[::-1]:
            made.append(steps.step()[1])
    return own_s, found_s
