"""Learning-rate schedule: where each step stands in it, also after a resume with other ranks or batches.

A schedule is laid out over the steps that a run is planned to have. Resumed on two devices in step instead of one, or
independently, what is left of the data makes another number of steps. The rule: the rate continues from where it
stands, and what is left of its schedule is stretched or squeezed over the steps that are left, so that it neither
jumps nor ends early or late. A new limit (`--steps`, `--epochs`) asks for another schedule, which is laid out from the
first step on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Schedule:
    """Places of steps in a schedule.

    Attributes:
        ends: The step after which nothing is left to do.
        length: Places in the schedule.
        from_step: Places go on evenly from this step,
        from_place: which has this place, to `length` at `ends`.
        asked: Steps and epochs asked for.
    """

    ends: int
    length: float
    from_step: int = 0
    from_place: float = 0.0
    asked: tuple[int | None, ...] = ()

    @classmethod
    def new(cls, ends: int, asked: Sequence[int | None]) -> Schedule:
        """One place a step."""
        return cls(ends, float(ends), asked=tuple(asked))

    def place(self, step: int) -> float:
        """The place of step number `step` (1-based)."""
        span = self.ends - self.from_step
        pace = (self.length - self.from_place) / span if span > 0 else 1.0
        return self.from_place + (step - self.from_step) * pace

    def resumed(self, planned: Schedule, step: int) -> Schedule:
        """This schedule as a run continues it after `step` steps.

        Args:
            planned: What would be laid out now.
            step: Steps done.
        """
        if planned.asked != self.asked:
            return planned
        if planned.ends == self.ends:
            return self
        return Schedule(planned.ends, self.length, step, min(self.length, self.place(step)), self.asked)

    def expecting(self, step: int, steps_left: int) -> Schedule:
        """The schedule after `step` steps with `steps_left` more expected; never beyond a limit in steps."""
        asked = self.asked[0] if self.asked else None
        ends = step + max(1, steps_left) if asked is None else min(step + max(1, steps_left), asked)
        return Schedule(ends, self.length, step, min(self.length, self.place(step)), self.asked)

    def as_dict(self) -> dict[str, Any]:
        """As a checkpoint keeps it."""
        return asdict(self)


def saved_schedule(values: Mapping[str, Any] | None) -> Schedule | None:
    """What `Schedule.as_dict` gave; None for a checkpoint that says nothing of it."""
    return None if values is None else Schedule(**{**values, "asked": tuple(values["asked"])})
