"""Straggler watch: names the device that the others of a synchronised run wait for, the reason, and the remedy.

Every step takes equally long on all ranks: those that finish early wait in the exchange for the last one. Each rank
times its own wait there (`sync_wait_s`), transfer included. The transfer is alike on all, so the shortest wait of a
step is subtracted; the rank that waited that long was the last one. No clock of one rank is compared with another's.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from core.config.fields import Needs
from core.errors import sentences
from core.formatting import listed, number, percent
from core.host.ranks import Rank, Ranks
from core.host.services import HostServices
from core.host.states import AttemptPhase
from core.host.watches.watch import Watch
from core.machine.devices.device import POWER_CAP

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 4.0
# Steps to judge by.
ENOUGH: Final = 20
# Share of a step lost by waiting from which a straggler is reported …
BEGINS: Final = 0.1
# … and below which it is over.
ENDS: Final = 0.05
# Looks in a row that have to agree, so that the report does not change to and fro.
IN_A_ROW: Final = 3
# Share of the steps in which a straggler must be among the last. Ranks that are late in turn are none.
_STEADY: Final = 0.75
# A rank that waits less than this part of the longest wait is among the last.
_NEAR: Final = 0.25
# Predicted gain of load balancing from which it is offered; it changes shares from there on, too.
WORTH: Final = 0.05
_MOST_STEPS: Final = 512
_MOST_OPEN: Final = 10_000


@dataclass(frozen=True, slots=True)
class RankStep:
    """One step as one rank reports it; `wait_s` is its time in the exchange with nothing to compute."""

    time_s: float
    wait_s: float
    data_s: float
    samples: float


def rank_step(line: Mapping[str, Any]) -> RankStep | None:
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
    """The ranks that the others wait for, by medians over some steps; figures of ranks stand in their order.

    Attributes:
        lost: Share of a step that the others wait for them.
        waits: Share of a step that each rank waits for the last one.
        work_s: Each rank's time in a step without its time in the exchange.
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

    def excess(self, figures: Sequence[float]) -> float:
        return figures[self.slowest] - sum(figures[rank] for rank in self.others) / len(self.others)

    @property
    def balance_gain(self) -> float:
        """The share by which a step would be shorter if samples were shared out by measured speed."""
        total = round(sum(self.samples))
        if total <= 0 or min(*self.work_s, *self.samples) <= 0:
            return 0.0
        speeds = [samples / work_s for samples, work_s in zip(self.samples, self.work_s, strict=True)]
        shares = [max(1, round(total * speed / sum(speeds))) for speed in speeds]
        longest_s = max(share / speed for share, speed in zip(shares, speeds, strict=True))
        return max(0.0, (max(self.work_s) - longest_s) / self.step_s)


def find_straggler(steps: Sequence[Sequence[RankStep]], least: float = BEGINS) -> Straggler | None:
    """Judge some steps, each with all ranks in order; None where no rank makes the others wait `least` of a step."""
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
class Reason:
    """The reason ("data", "throttled" or "slower") and the next step; `gain` is that of load balancing."""

    kind: str
    cause: str
    next_step: str
    window_step: str
    gain: float = 0.0


def straggler_reason(found: Straggler, name: str, held_down: str, *, can_balance: bool, is_balanced: bool) -> Reason:
    """Return the most certain reason; `name` is the slowest device's, `held_down` why its clock is held down.

    `can_balance`: the mode can give devices unequal shares of a batch; `is_balanced`: it does already.
    """
    excess_s, more_data_s = found.excess(found.work_s), found.excess(found.data_s)
    if more_data_s > excess_s / 2 > 0:
        loads = f"{name} spends {_time(found.data_s[found.slowest])} of each step on loading data"
        step = "Put the data on a faster drive, or do the slow part of loading before the run, once for all samples."
        return Reason("data", f"{loads}, {_time(more_data_s)} more than the others.", step, step)
    kind, step = "slower", ""
    cause = f"{name} works {_time(found.work_s[found.slowest])} in each step, {_time(excess_s)} more than the others."
    if held_down:
        kind, step = "throttled", "Check its cooling and power supply."
        cause = f"The clock of {name} is held down ({held_down})."
    gain = found.balance_gain if can_balance and not is_balanced else 0.0
    if gain >= WORTH:
        shorter = f"With fewer samples for it, steps would be about {percent(gain)} shorter:"
        offer = f"{step} {shorter} stop the run and resume it with".lstrip()
        return Reason(kind, cause, f"{offer} --balance measured.", f"{offer} load balancing.", gain)
    if not step and is_balanced:
        step = "Load balancing has given it fewer samples already. A smaller micro-batch allows finer shares."
    elif not step and can_balance:
        step = "Choose devices of equal speed, or a larger global batch, which load balancing can share out."
    step = step or "Choose devices of equal speed, or train with DDP, which can give a slower device fewer samples."
    return Reason(kind, cause, step, step)


def _time(seconds: float) -> str:
    return f"{number(1e3 * seconds, 2)} ms" if seconds < 1 else f"{number(seconds, 2)} s"


class StragglerWatch(Watch):
    """Watches one attempt's ranks where they train in step and the mode measures their waits."""

    def __init__(self, services: HostServices, ranks: Ranks) -> None:
        self._emit = services.stream.emit
        self._ranks = ranks
        self._is_on = ranks.synchronised and len(ranks.all) > 1 and not ranks.run.recipe.self_contained
        self._open: dict[int, dict[int, RankStep]] = {}
        self._steps: deque[Sequence[RankStep]] = deque(maxlen=_MOST_STEPS)
        self._reported: Straggler | None = None
        self._found: tuple[int, ...] = ()
        self._in_a_row = 0
        self._due: float | None = None
        self._readings: dict[str, Mapping[str, Any]] = {}

    def take(self, rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        if not self._is_on:
            return
        for line in lines:
            step = line.get("step")
            if line.get("event") != "step" or not isinstance(step, int) or (found := rank_step(line)) is None:
                continue
            reported = self._open.setdefault(step, {})
            reported[rank.number] = found
            if len(reported) == len(self._ranks.all):
                self._steps.append([reported[one.number] for one in self._ranks])
                while self._open and (first := next(iter(self._open))) <= step:
                    # Ranks report in order, so nothing more comes of earlier steps.
                    del self._open[first]
        if len(self._open) > _MOST_OPEN:
            self._open.clear()

    def sampled(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._readings.update({str(row.get("uuid")): row for row in rows})

    def tick(self, now: float, phase: AttemptPhase) -> None:
        if phase is not AttemptPhase.TRAINING:
            return
        if self._due is None:
            self._due = now + LOOK_EVERY_S
        if now < self._due or len(self._steps) < ENOUGH:
            return
        self._due = now + LOOK_EVERY_S
        self._judge(find_straggler(tuple(self._steps), BEGINS if self._reported is None else ENDS))
        self._steps.clear()

    def _judge(self, found: Straggler | None) -> None:
        ranks = () if found is None else found.ranks
        before = self._reported
        if ranks == (() if before is None else before.ranks):
            self._in_a_row = 0
            return
        self._in_a_row = self._in_a_row + 1 if ranks == self._found else 1
        self._found = ranks
        if self._in_a_row < IN_A_ROW:
            return
        self._reported, self._in_a_row = found, 0
        if found is not None:
            self._report(found)
        elif before is not None:
            names = listed([self._ranks[rank].device for rank in before.ranks])
            self._emit("straggler", step=self._step, ranks=[], text=f"The other devices no longer wait for {names}.")

    @property
    def _step(self) -> int:
        return max(rank.step for rank in self._ranks)

    def _report(self, found: Straggler) -> None:
        run, slowest = self._ranks.run, self._ranks[found.slowest]
        reason = straggler_reason(
            found,
            slowest.device,
            _held_down(self._readings.get(slowest.command.device.uuid, {})),
            can_balance=Needs.DDP in run.has,
            is_balanced=run.config.balance == "measured",
        )
        who, waiting = (listed([self._ranks[rank].device for rank in ranks]) for ranks in (found.ranks, found.others))
        text = (
            f"{waiting} {'waits' if len(found.others) == 1 else 'wait'} {percent(found.lost)} of each step for {who}."
        )
        log.info("straggler: %s (%s)", text, reason.kind)
        figures = {
            "step": self._step,
            "ranks": list(found.ranks),
            "lost": round(found.lost, 4),
            "waits": {str(rank): round(share, 4) for rank, share in enumerate(found.waits)},
            "reason": reason.kind,
        }
        self._emit("straggler", text=text, **figures)
        self._emit(
            "alert",
            kind="straggler",
            title=f"{who} {'slows' if len(found.ranks) == 1 else 'slow'} down the other devices",
            cause=sentences(text, reason.cause),
            next_step=reason.next_step,
            window_step=reason.window_step,
            gain=round(reason.gain, 4),
            **figures,
        )


def _held_down(reading: Mapping[str, Any]) -> str:
    """The reason why a GPU's clock is held down, but for its power limit, as text; empty without one."""
    reasons = [str(why) for why in reading.get("throttle_reasons") or () if why != POWER_CAP]
    celsius = reading.get("temperature_celsius")
    hot = f", at {number(celsius, 2)} °C" if isinstance(celsius, int | float) else ""
    return f"{reasons[0]}{hot}" if reasons else ""
