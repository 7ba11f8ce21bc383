"""Times real optimizer steps of a recipe on one device: data, forward and backward pass, update.

All ranks of a run make their steps at the same time, as in the run: CPU devices share memory and caches, GPUs the
processor that feeds them. In between, the first rank makes the same steps alone, with all threads that one device has.
The two take turns, so that a machine which becomes faster or slower does so for both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import torch

from core.config.batch import Batch
from core.machine.devices.own_gpu import OwnGpu
from workers.estimate.meeting import Meeting
from workers.optim.precision import Precision
from workers.strategies import Replica
from workers.training.evaluation import to_device
from workers.training.task import LossAndMetrics, StepSamples, Task

MOST_TURNS: Final = 5
LEAST_TURNS: Final = 2
LIMIT_S: Final = 7.0
"""For all steps: where they take long there are fewer of them, and then with fewer samples."""
TURN_S: Final = 0.4
"""A turn has as many steps that count as this takes."""
GPU_TURN_S: Final = 0.5
"""A GPU's energy counter moves about every 0.1 s."""
SETTLE_S: Final = 0.8
"""Steps before those do not count. Where no core is idle, Linux starts a new OpenMP thread on the core of the thread
that made it, and the two take turns there until it is moved: 0.3 to 0.8 s, in which two threads are as slow as one."""
_MOST_STEPS: Final = 100
_MOST_UNSETTLED: Final = 400
_PATIENCE: Final = 1.5
"""Steps may take this many times as long as there is time for, where they tell more by that."""


@dataclass
class _Turns:
    """What was timed in turns of one kind (`core.estimate.step_figures.TimedTurns`)."""

    threads: int
    few_s: float = 0.0
    steps: list[dict[str, Any]] = field(default_factory=list)
    energy_j: float | None = 0.0
    took_s: float = 0.0

    def values(self) -> dict[str, Any]:
        power_w = None if self.energy_j is None or not self.took_s else self.energy_j / self.took_s
        return {"threads": self.threads, "few_s": self.few_s, "steps": self.steps, "power_w": power_w}


class StepTimes:
    """Steps of one task on one device.

    Args:
        task: The recipe's.
        precision: Of the passes.
        device: Where the model is moved.
        batch: One rank's: the micro-batch, and how many of them a step has.
        chunk: Samples of one rank's part of a chunk.
        meeting: With the ranks that make their steps at the same time.
    """

    def __init__(
        self, task: Task, precision: Precision, device: torch.device, batch: Batch, chunk: int, meeting: Meeting
    ) -> None:
        model = task.model.to(device)
        optimizer = task.optimization.optimizer(model, 1e-6)
        self._replica = Replica(model, optimizer, task.optimization, precision)
        self._task, self._precision, self._device, self._batch = task, precision, device, batch
        self._chunk, self._meeting = max(batch.global_, chunk), meeting
        self._energy = OwnGpu(is_amd=torch.version.hip is not None) if device.type == "cuda" else None
        self._most_threads = torch.get_num_threads()  # a recipe may want fewer than it could have
        self._next = 0

    def measure(self, threads: int, alone_threads: int | None, *, is_first: bool) -> dict[str, Any]:
        """Times steps; every rank calls it.

        Args:
            threads: Of this rank beside the others; 0 on a GPU.
            alone_threads: Of the first rank by itself; None: it has no such turns.
            is_first: This is the first rank.

        Returns:
            The values of `core.estimate.step_figures.RankTimes`.
        """
        began, few = self._now(), min(2, self._batch.micro)
        together = _Turns(threads)
        kinds = [together]
        if alone_threads is not None:
            kinds.append(_Turns(alone_threads))
        self._step(few)  # makes the optimizer's state
        prepare_s, longest_s = 0.0, []
        for turns in kinds:
            first = {"prepare_s": 0.0, "pass_s": 0.0, "update_s": 0.0}
            if turns is together or is_first:
                self._take(turns.threads)
                self._begin_chunk()
                first = self._step(few)
                turns.few_s = first["pass_s"]
            prepare_s = max(prepare_s, self._meeting.highest(first["prepare_s"]))
            longest_s.append(self._meeting.highest(first["pass_s"] + first["update_s"]))
        plan = self._plan(prepare_s, longest_s, few, began)
        if plan.samples > few:  # the first steps of that size take memory from the system: up to half as long again
            for turns in kinds:
                self._meeting.highest()
                if turns is together or is_first:
                    self._take(turns.threads)
                    self._step(plan.samples)
        for _ in range(plan.turns):
            for turns, steps in zip(kinds, plan.steps, strict=True):
                self._meeting.highest()
                if turns is together or is_first:
                    self._turn(turns, plan.samples, steps, meets=turns is together)
        found = {name: turns.values() for name, turns in zip(("together", "alone"), kinds, strict=False)}
        return {
            "micro_batch": self._batch.micro,
            "few": few,
            "samples": plan.samples,
            "batch": self._batch.global_,
            "chunk": self._chunk,
            "tokens_per_sample": self._task.tokens_per_sample,
            **(found if is_first else {"together": found["together"]}),
        }

    def _plan(self, prepare_s: float, longest_s: Sequence[float], few: int, began: float) -> _Plan:
        """As many steps as the time allows, alike on all ranks; `longest_s`: a step of `few` samples, in each kind."""
        micro = self._batch.micro
        left_s = max(0.1, LIMIT_S - self._meeting.highest(self._now() - began))
        whole_s = [seconds * micro / few for seconds in longest_s]
        prepares_s = prepare_s * len(whole_s)
        least = LEAST_TURNS + 1  # with steps that do not count
        samples = max(few, min(micro, int(micro * (left_s / least - prepares_s) / sum(whole_s))))
        double = min(micro, 2 * few)
        if samples < double and least * (prepares_s + sum(whole_s) * double / micro) <= _PATIENCE * left_s:
            samples = double  # of two sizes, what does not grow with the samples is known
        steps = [_Steps.of(seconds * samples / micro, self._device) for seconds in whole_s]
        round_s = prepares_s + sum(one.took_s for one in steps)
        if LEAST_TURNS * round_s > _PATIENCE * left_s:  # long steps, of which threads that settle are a small part
            steps = [replace(one, unsettled=0) for one in steps]
            round_s = prepares_s + sum(one.took_s for one in steps)
        return _Plan(samples, steps, max(LEAST_TURNS, min(MOST_TURNS, int(left_s / round_s))))

    def _turn(self, turns: _Turns, samples: int, steps: _Steps, *, meets: bool) -> None:
        """Makes the steps of a turn; one that `meets` begins each of them with all other ranks."""
        self._take(turns.threads)
        self._begin_chunk()
        energy_j, began = self._energy_j(), self._now()
        for number in range(steps.unsettled + steps.counted):
            if meets:
                self._meeting.highest()
            turns.steps.append({"counts": number >= steps.unsettled, **self._step(samples)})
        turns.took_s += self._now() - began
        after_j = self._energy_j()
        known = energy_j is not None and after_j is not None and turns.energy_j is not None
        turns.energy_j = turns.energy_j + after_j - energy_j if known else None  # type: ignore[operator]

    def _energy_j(self) -> float | None:
        return None if self._energy is None else self._energy.energy_j()

    def _take(self, threads: int) -> None:
        if threads:
            torch.set_num_threads(min(threads, self._most_threads))

    def _begin_chunk(self) -> None:
        """The next step is the first of a chunk."""
        self._next = -(-self._next // self._chunk) * self._chunk

    def _step(self, samples: int) -> dict[str, Any]:
        """One step (`core.estimate.step_figures.TimedStep`)."""
        indices, begins = np.arange(samples, dtype=np.int64), self._next % self._chunk == 0
        began = self._now()
        if self._task.before_step is not None:
            numbers = self._next + np.arange(self._batch.global_, dtype=np.int64)
            with torch.no_grad(), self._precision.forward():
                self._task.before_step(StepSamples(0, numbers, numbers))
            indices = numbers[:samples]
        self._next += self._batch.global_
        prepared = self._now()
        with self._replica.micro_batch(last=True):
            inputs = to_device(self._task.batch(indices), self._device)
            with self._precision.forward():
                loss = LossAndMetrics.of(self._task.loss(self._replica.module, inputs)).loss
            self._replica.backward(loss, last=True)
        passed = self._now()
        self._replica.update()
        times = {"prepare_s": prepared - began, "pass_s": passed - prepared, "update_s": self._now() - passed}
        return {"begins": begins, **times}

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps of a turn: those in which threads settle, and those that count; each of them takes `step_s`."""

    step_s: float
    unsettled: int
    counted: int

    @classmethod
    def of(cls, step_s: float, device: torch.device) -> Self:
        """As many as the constants above ask for."""
        step_s = max(1e-6, step_s)
        counted = math.ceil((GPU_TURN_S if device.type == "cuda" else TURN_S) / step_s)
        return cls(step_s, min(_MOST_UNSETTLED, math.ceil(SETTLE_S / step_s)), min(_MOST_STEPS, counted))

    @property
    def took_s(self) -> float:
        """Of the whole turn."""
        return self.step_s * (self.unsettled + self.counted)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Samples of a micro-batch, the steps of a turn of each kind, and turns of each kind."""

    samples: int
    steps: Sequence[_Steps]
    turns: int
