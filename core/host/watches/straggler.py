"""Straggler: the device that the others of a synchronised run wait for, why, and what would help. Pure.

Every step takes equally long on all ranks: those that are done early wait in the exchange for the last one. Each rank
times there what it waits itself (`sync_wait_s`), transfer included. The transfer is alike on all, so the shortest wait
of a step is taken off; who waited that long was the last one. No clock of one rank is compared with another's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

from core.formatting import listed, number, percent

# Steps to judge by.
ENOUGH: Final = 20
# Share of a step that is lost by waiting, from which on it is said …
BEGINS: Final = 0.1
# … and below which it is over.
ENDS: Final = 0.05
# Looks that have to agree before anything is said, so that it does not change to and fro.
IN_A_ROW: Final = 3
# Share of the steps in which a straggler must be among the last. Ranks that are late in turn are none.
_STEADY: Final = 0.75
# Who waits less than this part of the longest wait is among the last.
_NEAR: Final = 0.25
# Predicted gain of load balancing from which on it is offered; it changes shares from there on, too.
WORTH: Final = 0.05
# Times that differ by less than this are alike.
_ALIKE: Final = 0.15


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
    """Verdict on a run's devices after several measurements.

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


@dataclass(frozen=True, slots=True)
class DeviceConditions:
    """A device's readings that may explain why it is slow.

    Attributes:
        throttled: Why a GPU's clock was held down in the last seconds, but for its power limit.
        celsius: How hot it is; None where that is not known.
        programs: Others that compute on the GPU.
    """

    throttled: tuple[str, ...] = ()
    celsius: float | None = None
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason and the next step.

    Attributes:
        kind: "samples", "data", "throttled", "program" or "slower".
        window_step: The same with the labels of the window.
        gain: By how much load balancing is predicted to shorten a step, as a share of it; 0 where it cannot help.
    """

    kind: str
    cause: str
    next_step: str
    window_step: str
    gain: float = 0.0


def straggler_reason(
    found: Straggler, names: Sequence[str], here: DeviceConditions, *, can_balance: bool, is_balanced: bool
) -> Reason:
    """The most certain reason.

    Args:
        found: Who makes the others wait.
        names: What the devices are called, by rank.
        here: What is known of the slowest one.
        can_balance: The mode can give devices unequal shares of a batch.
        is_balanced: It does already.
    """
    gain = balance_gain(found) if can_balance and not is_balanced else 0.0
    if _has_more_samples(found) and not is_balanced:
        return _samples(found, names)
    kind, cause, step = _find_reason(found, names, here)
    if kind == "data":
        return Reason(kind, cause, step, step)
    if gain >= WORTH:
        shorter = f"With fewer samples for it, steps would be about {percent(gain)} shorter:"
        offer = f"{step} {shorter} stop the run and resume it with".lstrip()
        return Reason(kind, cause, f"{offer} --balance measured.", f"{offer} load balancing.", gain)
    step = step or _otherwise(can_balance=can_balance, is_balanced=is_balanced)
    return Reason(kind, cause, step, step)


def balance_gain(found: Straggler) -> float:
    """By which share a step would be shorter if samples were shared out by measured speed."""
    total = round(sum(found.samples))
    if total <= 0 or any(work_s <= 0 for work_s in found.work_s) or min(found.samples) <= 0:
        return 0.0
    speeds = [samples / work_s for samples, work_s in zip(found.samples, found.work_s, strict=True)]
    shares = [max(1, round(total * speed / sum(speeds))) for speed in speeds]
    longest_s = max(share / speed for share, speed in zip(shares, speeds, strict=True))
    return max(0.0, (max(found.work_s) - longest_s) / found.step_s)


def _find_reason(
    found: Straggler, names: Sequence[str], here: DeviceConditions
) -> tuple[str, str, str]:  # kind, cause, next step
    slow = found.slowest
    name, excess_s = names[slow], found.work_s[slow] - _of_others(found, found.work_s)
    more_data_s = found.data_s[slow] - _of_others(found, found.data_s)
    if more_data_s > excess_s / 2 > 0:
        cause = f"{name} spends {_time(found.data_s[slow])} of each step on loading data, {_time(more_data_s)} more "
        step = "Put the data on a faster drive, or do the slow part of loading before the run, once for all samples."
        return "data", f"{cause}than the others.", step
    if here.throttled:
        hot = "" if here.celsius is None else f", at {number(here.celsius, 2)} °C"
        cause = f"The clock of {name} is held down ({here.throttled[0]}{hot})."
        return "throttled", cause, "Check its cooling and power supply."
    if here.programs:
        cause = f"{listed(here.programs)} {'uses' if len(here.programs) == 1 else 'use'} {name} at the same time."
        return "program", cause, "Close other programs, or leave this device to them."
    cause = f"{name} works {_time(found.work_s[slow])} in each step, {_time(excess_s)} more than the others."
    return "slower", cause, ""


def _samples(found: Straggler, names: Sequence[str]) -> Reason:
    slow, total = found.slowest, sum(found.samples)
    cause = f"{names[slow]} trains {_whole(found.samples[slow])} of the {_whole(total)} samples of a batch."
    step = f"Choose a global batch that is divisible by {len(names)}, the number of devices"
    return Reason("samples", cause, f"{step} (--global-batch-size).", f"{step}.")


def _has_more_samples(found: Straggler) -> bool:
    """It has more to do, and takes as long as the others for each sample."""
    slow, others = found.slowest, _of_others(found, found.samples)
    if others <= 0 or found.samples[slow] <= (1 + WORTH) * others:
        return False
    each_s, others_each_s = found.work_s[slow] / found.samples[slow], _of_others(found, found.work_s) / others
    return each_s <= (1 + _ALIKE) * others_each_s


def _of_others(found: Straggler, figures: Sequence[float]) -> float:
    return sum(figures[rank] for rank in found.others) / len(found.others)


def _otherwise(*, can_balance: bool, is_balanced: bool) -> str:
    if is_balanced:
        return "Load balancing has given it fewer samples already. A smaller micro-batch allows finer shares."
    if can_balance:
        return "Choose devices of equal speed, or a larger global batch, which load balancing can share out."
    return "Choose devices of equal speed, or train with DDP, which can give a slower device fewer samples."


def _whole(value: float) -> str:
    return f"{round(value):,}"


def _time(seconds: float) -> str:
    return f"{number(1e3 * seconds, 2)} ms" if seconds < 1 else f"{number(seconds, 2)} s"
