"""Results of a benchmark, as values."""

from __future__ import annotations

from dataclasses import dataclass

from core.bench.contenders import Contender
from core.bench.kinds import Kind
from core.launch.resolved import ResolvedRun
from core.trials.answers import Answered
from core.trials.speed import samples_per_s, step_seconds


@dataclass(frozen=True, slots=True)
class Measured:
    """One contender's turns.

    Attributes:
        contender: Which.
        turns: Those that were measured.
        failure: Why there are no more; None: none failed.
    """

    contender: Contender
    turns: tuple[Answered, ...] = ()
    failure: Answered | None = None

    @property
    def speeds(self) -> list[float]:
        """Samples a second of all devices together, in each turn."""
        return [samples_per_s(self.contender.run, turn.steps_s, turn.round_s) for turn in self.turns]

    @property
    def steps_s(self) -> list[float]:
        """Seconds of a step, in each turn."""
        return [step_seconds(self.contender.run, turn.steps_s, turn.round_s) for turn in self.turns]


@dataclass(frozen=True, slots=True)
class Bench:
    """A benchmark, whole or as far as it came.

    Attributes:
        kind: What is measured.
        run: On the most devices.
        threads: Processor threads of each device.
        measured: One entry for each contender, in their order.
        turns: How many each was to have.
        seconds: How long a turn is timed.
        is_stopped: It was ended early.
    """

    kind: Kind
    run: ResolvedRun
    threads: int
    measured: tuple[Measured, ...]
    turns: int
    seconds: float
    is_stopped: bool = False

    @property
    def has_figures(self) -> bool:
        """Whether anything was measured."""
        return any(one.turns for one in self.measured)

    @property
    def has_failures(self) -> bool:
        """Whether a contender has failed, or cannot fit."""
        return any(one.failure is not None for one in self.measured)

    @property
    def base(self) -> Measured | None:
        """The one on the fewest devices, with which others are compared; None: it was not measured."""
        return self.measured[0] if self.measured and self.measured[0].turns else None
