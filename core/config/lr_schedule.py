"""Learning-rate schedule: the rate at each step, also after a resume with other limits, ranks or batches.

A schedule is laid out over the steps that a run is planned to have. A resume on other devices, in another mode or with
another `--steps` or `--epochs` changes that number. The rule: the rate continues from its present value, and the rest
of the schedule is stretched or squeezed over the steps that are left, so that it neither jumps nor ends early or late.
After the schedule's end the rate stays there. `CHOICES` names the other ways to continue under a new limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

CONTINUE: Final = "continue"
DECAY: Final = "decay"
RESTART: Final = "restart"
REPLAN: Final = "replan"
# From the present rate along the rest of the schedule; down again from the present rate; warm-up and decay again from
# the peak over the steps that are left; or as if the run had been planned with all its steps from the first.
CHOICES: Final = (CONTINUE, DECAY, RESTART, REPLAN)

# The share of the peak rate at a place, given the schedule's length and whether it begins with the warm-up.
Curve = Callable[[float, float, bool], float]


def cosine(place: float, length: float, warmup_steps: float, min_lr_ratio: float, peak: float) -> float:
    """The rate at a place (1-based; between two steps after a resume with other ranks).

    Warm-up is linear; after it Loshchilov and Hutter's cosine (arXiv 1608.03983) without restarts, down to
    `min_lr_ratio` × `peak` at `length`.
    """
    if warmup_steps > 0 and place <= warmup_steps:
        return peak * place / warmup_steps
    span = max(1, length - warmup_steps)
    done = min(1.0, (place - warmup_steps) / span)
    return peak * (min_lr_ratio + (1 - min_lr_ratio) * 0.5 * (1 + math.cos(math.pi * done)))


@dataclass(frozen=True, slots=True)
class Schedule:
    """Places of steps in a schedule.

    Attributes:
        ends: The last planned step.
        from_step: Places go on evenly from this step,
        from_place: which has this place, to `length` at `ends`.
        choice: The way in which it came to continue under them, of `CHOICES`.
        scale: Its peak as a share of the run's.
    """

    ends: int
    length: float
    from_step: int = 0
    from_place: float = 0.0
    asked: tuple[int | None, ...] = ()
    choice: str = CONTINUE
    scale: float = 1.0
    warms_up: bool = True

    @classmethod
    def new(cls, ends: int, asked: Sequence[int | None], choice: str = CONTINUE) -> Schedule:
        return cls(ends, float(ends), asked=tuple(asked), choice=choice)

    def place(self, step: int) -> float:
        span = self.ends - self.from_step
        pace = (self.length - self.from_place) / span if span > 0 else 1.0
        return self.from_place + (step - self.from_step) * pace

    def share(self, step: int, curve: Curve) -> float:
        """The rate of step number `step` (1-based) as a share of the run's peak."""
        return self.scale * curve(self.place(step), self.length, self.warms_up)

    def resumed(self, planned: Schedule, step: int, curve: Curve) -> Schedule:
        """Continue this schedule after `step` steps; `planned` is the schedule for the settings of now."""
        if (planned.asked, planned.choice) != (self.asked, self.choice) and step > 0:
            no_jump = planned.choice == CONTINUE and self.share(step, curve) == planned.share(step, curve)
            if planned.choice == REPLAN or no_jump:
                # Within the warm-up nothing jumps: as if planned so, it keeps its length.
                return planned
            if planned.choice in (DECAY, RESTART):
                decays = planned.choice == DECAY
                scale = self.share(step, curve) if decays else 1.0
                rest = float(planned.ends - step)
                return replace(planned, length=rest, from_step=step, scale=scale, warms_up=not decays)
        if planned.ends == self.ends:
            return replace(self, asked=planned.asked, choice=planned.choice)
        return replace(self._spread(planned.ends, step), asked=planned.asked, choice=planned.choice)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _spread(self, ends: int, step: int) -> Schedule:
        return replace(self, ends=ends, from_step=step, from_place=min(self.length, self.place(step)))


def saved_schedule(values: Mapping[str, Any] | None) -> Schedule | None:
    """Read `Schedule.as_dict`; None for a checkpoint without one."""
    return None if values is None else Schedule(**{**values, "asked": tuple(values["asked"])})
