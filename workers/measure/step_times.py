"""Real optimizer steps of a recipe on one device, timed: data, forward and backward pass, update.

All ranks of a run make their steps at the same time, as in the run: CPU devices share memory and caches, GPUs the
processor that feeds them. In between, the first rank makes the same steps alone, with all threads that one device has.
The two take turns, so that a machine which becomes faster or slower does so for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final, Self

import numpy as np
import torch

from core.config.batch import Batch
from workers.measure.steps import Passes

MOST_TURNS: Final = 5
LEAST_TURNS: Final = 2
# For all steps: where they take long there are fewer of them, and then with fewer samples.
LIMIT_S: Final = 7.0
# A turn has as many steps that count as this takes.
TURN_S: Final = 0.4
# Steps before those do not count. Where no core is idle, Linux starts a new OpenMP thread on the core of the thread
# that made it, and the two take turns there until it is moved: 0.3 to 0.8 s, in which two threads are as slow as one.
SETTLE_S: Final = 0.8
_MOST_STEPS: Final = 100
_MOST_UNSETTLED: Final = 400
# Steps may take this many times as long as there is time for, where they tell more by that.
_PATIENCE: Final = 1.5

# Waits until all ranks have called it; the highest of their values, on all of them.
Highest = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class _Step:
    """Seconds of a step: what the recipe makes before it, its passes, the update; `longest_s` on the slowest rank."""

    begins_chunk: bool
    prepare_s: float
    pass_s: float
    update_s: float
    counts: bool = True
    longest_s: float = 0.0

    @property
    def trained_s(self) -> float:
        return self.pass_s + self.update_s


@dataclass
class _Turns:
    """Steps of turns of one kind: with all other ranks, or alone while they do nothing."""

    threads: int
    few_s: float = 0.0
    steps: list[_Step] = field(default_factory=list)

    @property
    def counted(self) -> list[_Step]:
        return [step for step in self.steps if step.counts] or self.steps


class StepTimes:
    """Steps of one task on one device.

    Args:
        passes: Of the task, by a replica that exchanges nothing.
        batch: One rank's: the micro-batch, and how many of them a step has.
        chunk: Samples of one rank's part of a chunk.
        highest: Connects the ranks that make their steps at the same time.
    """

    def __init__(self, passes: Passes, batch: Batch, chunk: int, highest: Highest) -> None:
        self._passes, self._batch, self._highest = passes, batch, highest
        self._chunk = max(batch.global_, chunk)
        self._few = min(2, batch.micro)
        self._most_threads = torch.get_num_threads()  # a recipe may want fewer than it could have
        self._next = 0

    def measure(self, threads: int, alone_threads: int | None, *, is_first: bool) -> dict[str, Any]:
        """Time steps; every rank calls it.

        Args:
            threads: Of this rank beside the others; 0 on a GPU.
            alone_threads: Of the first rank by itself; None: it has no such turns.
            is_first: This is the first rank.

        Returns:
            `together` and, on the first rank, `alone`: values of `core.measure.estimate.steps.StepFigures`.
        """
        began = self._passes.now()
        together = _Turns(threads)
        kinds = [together]
        if alone_threads is not None:
            kinds.append(_Turns(alone_threads))
        mine = [turns for turns in kinds if turns is together or is_first]
        self._step(self._few)  # makes the optimizer's state
        plan = self._plan(kinds, mine, began)
        # The first steps of that size take memory from the system: up to half as long.
        if plan.samples > self._few:
            for turns in kinds:
                self._highest(0.0)
                if turns in mine:
                    self._take(turns.threads)
                    self._step(plan.samples)
        for _ in range(plan.turns):
            for turns, steps in zip(kinds, plan.steps, strict=True):
                self._highest(0.0)
                if turns in mine:
                    self._turn(turns, plan.samples, steps, meets=turns is together)
        slowest_s = self._highest(median(step.trained_s for step in together.counted))
        wait_s = median(step.longest_s for step in together.counted) - slowest_s
        found = {"together": {**self._values(together, plan.samples), "wait_s": max(0.0, wait_s)}}
        return found if len(mine) == 1 else {**found, "alone": self._values(mine[1], plan.samples)}

    def _values(self, turns: _Turns, samples: int) -> dict[str, Any]:
        counted, micro = turns.counted, self._batch.micro
        pass_s = median(step.pass_s for step in counted)
        # Passes have a part that does not grow with the samples.
        if self._few < samples < micro:
            pass_s += (micro - samples) * max(0.0, pass_s - turns.few_s) / (samples - self._few)
        elif samples < micro:
            pass_s *= micro / samples
        return {
            "micro_batch": micro,
            "pass_s": max(1e-9, pass_s),
            "update_s": median(step.update_s for step in counted),
            "prepare_s": self._prepare_s(turns.steps),
            "tokens_per_sample": self._passes.task.tokens_per_sample,
        }

    def _prepare_s(self, steps: Sequence[_Step]) -> float:
        """Seconds for each sample: a step's share, and a chunk's where its first step takes longer than others."""
        inside = [step.prepare_s for step in steps if not step.begins_chunk]
        begins = [step.prepare_s for step in steps if step.begins_chunk]
        each_s = median(inside) if inside else 0.0
        first_s = max(0.0, median(begins) - each_s) if begins else 0.0
        return each_s / self._batch.global_ + first_s / self._chunk

    def _plan(self, kinds: Sequence[_Turns], mine: Sequence[_Turns], began: float) -> _Plan:
        """Plan as many steps as the time allows, alike on all ranks, from a step of few samples in each kind."""
        micro, few = self._batch.micro, self._few
        prepare_s, whole_s = 0.0, []
        for turns in kinds:
            first = _Step(True, 0.0, 0.0, 0.0)
            if turns in mine:
                self._take(turns.threads)
                self._begin_chunk()
                first = self._step(few)
                turns.few_s = first.pass_s
            prepare_s = max(prepare_s, self._highest(first.prepare_s))
            whole_s.append(self._highest(first.trained_s) * micro / few)
        left_s = max(0.1, LIMIT_S - self._highest(self._passes.now() - began))
        prepares_s = prepare_s * len(whole_s)
        least = LEAST_TURNS + 1  # with steps that do not count
        samples = max(few, min(micro, int(micro * (left_s / least - prepares_s) / sum(whole_s))))
        double = min(micro, 2 * few)
        if samples < double and least * (prepares_s + sum(whole_s) * double / micro) <= _PATIENCE * left_s:
            # Of two sizes, what does not grow with the samples is known.
            samples = double
        steps = [_Steps.of(seconds * samples / micro) for seconds in whole_s]
        round_s = prepares_s + sum(one.took_s for one in steps)
        # Long steps, of which threads that settle are a small part.
        if LEAST_TURNS * round_s > _PATIENCE * left_s:
            steps = [replace(one, unsettled=0) for one in steps]
            round_s = prepares_s + sum(one.took_s for one in steps)
        return _Plan(samples, steps, max(LEAST_TURNS, min(MOST_TURNS, int(left_s / round_s))))

    def _turn(self, turns: _Turns, samples: int, steps: _Steps, *, meets: bool) -> None:
        """Make the steps of a turn; one that `meets` begins each of them with all other ranks."""
        self._take(turns.threads)
        self._begin_chunk()
        for number in range(steps.unsettled + steps.counted):
            step = replace(self._step(samples), counts=number >= steps.unsettled)
            turns.steps.append(replace(step, longest_s=self._highest(step.trained_s)) if meets else step)

    def _take(self, threads: int) -> None:
        if threads:
            torch.set_num_threads(min(threads, self._most_threads))

    def _begin_chunk(self) -> None:
        """Let the next step be the first of a chunk."""
        self._next = -(-self._next // self._chunk) * self._chunk

    def _step(self, samples: int) -> _Step:
        now, begins = self._passes.now, self._next % self._chunk == 0
        numbers = self._next + np.arange(self._batch.global_, dtype=np.int64)
        began = now()
        self._passes.prepare(numbers, numbers)
        own = np.arange(samples, dtype=np.int64) if self._passes.task.before_step is None else numbers[:samples]
        self._next += self._batch.global_
        prepared = now()
        self._passes.make(own)
        passed = now()
        self._passes.replica.update()
        return _Step(begins, prepared - began, passed - prepared, now() - passed)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Numbers of steps in a turn: those in which threads settle, and those that count; each takes `step_s`."""

    step_s: float
    unsettled: int
    counted: int

    @classmethod
    def of(cls, step_s: float) -> Self:
        step_s = max(1e-6, step_s)
        unsettled, counted = (math.ceil(seconds / step_s) for seconds in (SETTLE_S, TURN_S))
        return cls(step_s, min(_MOST_UNSETTLED, unsettled), min(_MOST_STEPS, counted))

    @property
    def took_s(self) -> float:
        return self.step_s * (self.unsettled + self.counted)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Samples of a micro-batch, the steps of a turn of each kind, and turns of each kind."""

    samples: int
    steps: Sequence[_Steps]
    turns: int
