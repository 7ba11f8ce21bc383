"""Straggler: the device that the others of a synchronised run wait for, from what all ranks report. Pure.

Every step takes equally long on all ranks: those that are done early wait in the exchange for the last one. Each rank
times there what it waits itself (`sync_wait_s`), transfer included. The transfer is alike on all, so the shortest wait
of a step is taken off; who waited that long was the last one. No clock of one rank is compared with another's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

ENOUGH: Final = 20
"""Steps to judge by."""
BEGINS: Final = 0.1
"""Share of a step that is lost by waiting, from which on it is said …"""
ENDS: Final = 0.05
"""… and below which it is over."""
IN_A_ROW: Final = 3
"""Looks that have to agree before anything is said, so that it does not change to and fro."""
_STEADY: Final = 0.75
"""Share of the steps in which a straggler must be among the last. Ranks that are late in turn are none."""
_NEAR: Final = 0.25
"""Who waits less than this part of the longest wait is among the last."""


@dataclass(frozen=True, slots=True)
class RankStep:
    """One step as one rank reports it.

    Attributes:
        wait_s: What it spent in the exchange while it had nothing to compute.
    """

    time_s: float
    wait_s: float
    data_s: float
    samples: float


def rank_step(line: Mapping[str, Any]) -> RankStep | None:
    """From a step line; None where the mode does not measure all of it."""
    try:
        time_s, wait_s = float(line["step_time_s"]), float(line["sync_wait_s"])
        data_s, rate = float(line["data_wait_s"]), float(line["samples_per_s"])
    except (KeyError, TypeError, ValueError):
        return None
    if not time_s > 0 or min(wait_s, data_s, rate) < 0:
        return None
    return RankStep(time_s, min(wait_s, time_s), data_s, rate * time_s)


@dataclass(frozen=True, slots=True)
class Straggler:
    """Which ranks the others wait for, by medians over some steps; what is said of ranks is by their numbers.

    Attributes:
        lost: Share of a step that the others wait for them.
        waits: Share of a step that each rank waits for the last one.
        work_s: What each rank works in a step: all but what it spends in the exchange.
        data_s: What of that is waiting for data.
        samples: How many each rank trains in a step.
    """

    ranks: tuple[int, ...]
    lost: float
    waits: tuple[float, ...]
    step_s: float
    work_s: tuple[float, ...]
    data_s: tuple[float, ...]
    samples: tuple[float, ...]

    @property
    def others(self) -> tuple[int, ...]:
        return tuple(rank for rank in range(len(self.waits)) if rank not in self.ranks)

    @property
    def slowest(self) -> int:
        return max(self.ranks, key=self.work_s.__getitem__)


def find_straggler(steps: Sequence[Sequence[RankStep]], least: float = BEGINS) -> Straggler | None:
    """Judges some steps, each with all ranks in order; None where no rank makes the others wait `least` of a step."""
    if len(steps) < ENOUGH:
        return None
    ranks = range(len(steps[0]))
    waits = tuple(median((step[r].wait_s - _shortest(step)) / step[r].time_s for step in steps) for r in ranks)
    late = tuple(r for r in ranks if waits[r] <= _NEAR * max(waits) and _is_steady(steps, r))
    others = [waits[r] for r in ranks if r not in late]
    if not late or not others or (lost := sum(others) / len(others)) < least:
        return None

    def typical(figure: Callable[[RankStep], float]) -> tuple[float, ...]:
        return tuple(median(figure(step[r]) for step in steps) for r in ranks)

    return Straggler(
        late,
        lost,
        waits,
        median(step[0].time_s for step in steps),
        typical(lambda one: one.time_s - one.wait_s),
        typical(lambda one: one.data_s),
        typical(lambda one: one.samples),
    )


def _shortest(step: Sequence[RankStep]) -> float:
    return min(one.wait_s for one in step)


def _is_steady(steps: Sequence[Sequence[RankStep]], rank: int) -> bool:
    last = 0
    for step in steps:
        shortest, longest = _shortest(step), max(one.wait_s for one in step)
        last += step[rank].wait_s - shortest <= _NEAR * (longest - shortest)
    return last >= _STEADY * len(steps)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is held of a run's devices, after some looks at them.

    Attributes:
        straggler: What is said now; None: no device makes the others wait.
    """

    straggler: Straggler | None = None
    _found: tuple[int, ...] = ()
    _in_a_row: int = 0

    @property
    def least(self) -> float:
        """The share of a step from which on the next look is to find a straggler."""
        return BEGINS if self.straggler is None else ENDS

    def after(self, found: Straggler | None) -> Judgement:
        """What is held after another look. It changes once three looks in a row have found the same."""
        ranks = () if found is None else found.ranks
        if ranks == (() if self.straggler is None else self.straggler.ranks):
            return replace(self, _found=ranks, _in_a_row=0)
        in_a_row = self._in_a_row + 1 if ranks == self._found else 1
        if in_a_row < IN_A_ROW:
            return replace(self, _found=ranks, _in_a_row=in_a_row)
        return Judgement(found, ranks)
