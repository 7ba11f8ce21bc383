"""`tune`: makes trials of a run on all its devices within a time, and compares the best with the run's own settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from core.errors import ConfigError, PreflightError, RankdeckError
from core.launch.resolved import ResolvedRun
from core.measure.ranks import CancelledError, MeasuringRanks
from core.measure.room import Room
from core.measure.trial import TrialResult, samples_per_s, step_seconds
from core.measure.tune.tuned import (
    LEAST_PAIRS,
    Comparison,
    Result,
    Tuned,
    check_tunable,
    fastest,
    in_micro_batches,
    next_trial,
    rank_share,
)

# For all trials and the comparison. The estimate's figures are measured before that, once for each model.
SECONDS: Final = 60.0
# A trial may take this many times as long as expected.
_PATIENCE: Final = 4.0
# The least pairs of steps of a comparison (`workers.measure.steps`), with one that does not count, and one to spare.
_FEW_PAIRS: Final = 6


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of trials.

    Attributes:
        steps_s: How long the steps of a trial are timed.
        turn_s: How long the two settings take turns, for each of the least pairs.
        limit_s: For one trial, unless an earlier one says that it takes longer. A set of processes gets more for its
            first one (`core.measure.ranks`).
    """

    steps_s: float = 1.5
    turn_s: float = 2.0
    limit_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The current step, the trials so far, and the share of the time that is over."""

    doing: str
    results: tuple[Result, ...] = ()
    share: float = 0.0


Tell = Callable[[Progress], None]


def tune(
    run: ResolvedRun,
    room: Room | None = None,
    *,
    seconds: float = SECONDS,
    pace: Pace = Pace(),
    on_progress: Tell = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Tuned:
    """Find the micro-batch with which a run trains fastest. Blocks; may be called from any thread.

    When it returns or raises, no process that it started is left.

    Args:
        run: Its global batch stays.
        room: The memory that a trial may take; None: the model is measured where it is not known, in about twenty
            seconds.
        seconds: For trials and comparison, from when the processes have started.
        pace: Of a trial.
        on_progress: Called with each step of it.
        cancelled: Asked now and then; True ends it, with the trials made so far.

    Raises:
        ConfigError: See `core.measure.tune.tuned.check_tunable`.
        RankdeckError: The recipe refuses the run; or the model could not be measured.
    """
    check_tunable(run)
    if room is None:
        on_progress(Progress("Measuring the model"))
        try:
            room = Room.find(run, cancelled=cancelled)
        except CancelledError:
            return Tuned(run, (), is_stopped=True)
    tuner = _Tuner(run, room, time.monotonic() + seconds, seconds, pace, on_progress, cancelled)
    try:
        return tuner.tune()
    finally:
        tuner.close()


@dataclass(slots=True)
class _Tuner:
    run: ResolvedRun
    room: Room
    deadline: float
    seconds: float
    pace: Pace
    on_progress: Tell
    cancelled: Callable[[], bool]
    results: list[Result] = field(default_factory=list)
    _ranks: MeasuringRanks | None = None

    def tune(self) -> Tuned:
        try:
            self._search()
            return Tuned(self.run, tuple(self.results), self._compared())
        except CancelledError:
            return Tuned(self.run, tuple(self.results), is_stopped=True)

    def close(self) -> None:
        if self._ranks is not None:
            self._ranks.close()
            self._ranks = None

    def _search(self) -> None:
        """Make trials until none is left to make, or only the time for the comparison."""
        share = rank_share(self.run)
        while (size := next_trial(self.run.batch.micro, share, self.results)) is not None:
            if self.results and self._left_s() < self._comparison_s() + self._expected_s(size):
                return
            self._tell(f"Trying micro-batch {size} × {share // size}")
            self.results.append(self._tried(size))

    def _compared(self) -> Comparison | None:
        """The best settings and the run's own on the same model, in turns with each step; None: they are the same."""
        own, best = self.results[0], fastest(self.results)
        if best is None or best is own or not own.is_measured:
            return None
        self._tell("Comparing with your settings, step by step")
        build_s = max(own.took_s, best.took_s) - self.pace.steps_s
        seconds = min(2 * LEAST_PAIRS * self.pace.turn_s, max(self.pace.turn_s, self._left_s() - build_s))
        least_s = _FEW_PAIRS * (own.step_s + best.step_s)
        limit_s = max(self.pace.limit_s, _PATIENCE * (build_s + max(seconds, least_s)))
        run = in_micro_batches(self.run, best.micro_batch)
        made = self._trial(run, seconds, limit_s, self.run)
        speeds = [
            (samples_per_s(self.run, own_s, made.round_s), samples_per_s(run, best_s, made.round_s))
            for own_s, best_s in made.pairs
        ]
        return Comparison(tuple(found / before for before, found in speeds))

    def _tried(self, size: int) -> Result:
        accumulation = rank_share(self.run) // size
        try:
            run = in_micro_batches(self.run, size)
        except (ConfigError, PreflightError) as error:
            return Result(size, accumulation, "failed", cause=error.cause)
        need = self.room.need_bytes(run)
        if shortage := self.room.trial_shortage(self.run, run):
            return Result(size, accumulation, "too_large", need_bytes=need, cause=shortage)
        limit_s = max(self.pace.limit_s, _PATIENCE * self._expected_s(size))
        made = self._trial(run, self.pace.steps_s, limit_s)
        took_s = 0.0 if self._ranks is None else self._ranks.took_s
        if made.outcome != "measured":
            return Result(size, accumulation, made.outcome, took_s=took_s, need_bytes=need, cause=made.cause)
        return Result(
            size,
            accumulation,
            "measured",
            samples_per_s(run, made.steps_s, made.round_s),
            step_seconds(run, made.steps_s, made.round_s),
            took_s,
            need,
        )

    def _trial(self, run: ResolvedRun, seconds: float, limit_s: float, own: ResolvedRun | None = None) -> TrialResult:
        if self._ranks is not None and not self._ranks.is_usable:
            self.close()
        try:
            if self._ranks is None:
                self._ranks = MeasuringRanks.of_run(self.run, "trial", self.cancelled)
            made = self._ranks.make_trial(run, seconds, limit_s, own)
            # The time begins once the processes are there.
            if not self.results:
                self.deadline += self._ranks.start_s
            return made
        except CancelledError:
            raise
        except RankdeckError as error:  # no process, no folder
            self.close()
            return TrialResult("failed", cause=error.cause)

    def _expected_s(self, size: int) -> float:
        """Seconds of a trial, from that of the nearest micro-batch; its steps grow with it."""
        made = [result for result in self.results if result.is_measured]
        if not made:
            return self.pace.limit_s / _PATIENCE
        near = min(made, key=lambda result: abs(result.micro_batch - size))
        return near.took_s * max(1.0, size / near.micro_batch)

    def _comparison_s(self) -> float:
        own, best = self.results[0], fastest(self.results)
        if best is None or best is own:
            return 0.0
        turn_s = min(own.took_s, best.took_s) + self.pace.turn_s - self.pace.steps_s
        return turn_s + max(2 * self.pace.turn_s, LEAST_PAIRS * (own.step_s + best.step_s))

    def _left_s(self) -> float:
        return self.deadline - time.monotonic()

    def _tell(self, doing: str) -> None:
        share = 1 - self._left_s() / self.seconds
        self.on_progress(Progress(doing, tuple(self.results), min(1.0, max(0.0, share))))
