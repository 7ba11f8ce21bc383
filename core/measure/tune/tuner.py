"""`tune`: makes trials of a run on all its devices within a time, and compares the best with the run's own settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from core.errors import ConfigError, PreflightError, RankdeckError
from core.launch.resolved import ResolvedRun
from core.machine.devices.monitor import DeviceMonitor
from core.measure.estimate.free import free_now
from core.measure.estimate.probe import find_baselines, find_figures
from core.measure.ranks import CancelledError, MeasuringRanks
from core.measure.room import Room
from core.measure.trial import TrialResult, samples_per_s, step_seconds
from core.measure.tune.choice import Choice, check_tunable
from core.measure.tune.search import Result, fastest, next_trial
from core.measure.tune.tuned import LEAST_PAIRS, TURNS, Comparison, Tuned, compare

# For all trials and the comparison. What an estimate needs is measured before that, once for each model.
SECONDS: Final = 60.0
# A trial may take this many times as long as expected.
_PATIENCE: Final = 4.0
# A compiled trial is begun if so much time is left: small models take less, others are given up at the end of it.
_COMPILE_S: Final = 25.0
# The least pairs of steps of a comparison (`workers.measure.steps`), with one that does not count, and one to spare.
_FEW_PAIRS: Final = 6


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of trials.

    Attributes:
        steps_s: How long the steps of a trial are timed.
        turn_s: The same in a turn of the comparison.
        limit_s: For one trial, unless an earlier one says that it takes longer. A set of processes gets more for its
            first one (`core.measure.ranks`).
    """

    steps_s: float = 1.5
    turn_s: float = 2.0
    limit_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Where tuning is.

    Attributes:
        doing: What happens now, for a person.
        results: Of the trials so far.
        share: Of the time that is over, 0 … 1.
    """

    doing: str
    results: tuple[Result, ...] = ()
    share: float = 0.0


Tell = Callable[[Progress], None]


def find_room(
    run: ResolvedRun,
    runs_dir: Path,
    *,
    on_progress: Tell = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Room:
    """What trials of a run may take: its model is measured where it is not known, in about twenty seconds. Blocks.

    Args:
        run: What would be trained.
        runs_dir: Where runs are kept.
        on_progress: Called with what is measured.
        cancelled: Asked now and then; True ends it.

    Raises:
        CancelledError: `cancelled` said so.
        RankdeckError: What the recipe itself would raise; or the model could not be measured.
    """
    start = Choice.of(run)
    on_progress(Progress("Measuring the model"))
    figures, baselines = find_figures(run, cancelled=cancelled), find_baselines(run, cancelled=cancelled)
    stored = None
    if start.checkpointing:
        stored = find_figures(replace(start, checkpointing=False).applied(run), cancelled=cancelled)
    with DeviceMonitor() as monitor:
        free = free_now(monitor.sample(), runs_dir)
    return Room(figures, baselines, free, stored)


def tune(
    run: ResolvedRun,
    room: Room,
    *,
    seconds: float = SECONDS,
    pace: Pace = Pace(),
    on_progress: Tell = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Tuned:
    """Finds the settings with which a run trains fastest. Blocks for about `seconds`; may be called from any thread.

    When it returns or raises, no process that it started is left.

    Args:
        run: What would be trained; its global batch stays.
        room: What a trial may take.
        seconds: For trials and comparison, from when the processes have started.
        pace: Of a trial.
        on_progress: Called with each step of it.
        cancelled: Asked now and then; True ends it, with what was found so far.

    Raises:
        ConfigError: See `core.measure.tune.choice.check_tunable`.
    """
    check_tunable(run)
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
            return self._compared()
        except CancelledError:
            return Tuned(self.run, tuple(self.results), is_stopped=True)

    def close(self) -> None:
        if self._ranks is not None:
            self._ranks.close()
            self._ranks = None

    def _search(self) -> None:
        """Trials until none is left to make, or only the time for the comparison."""
        start = Choice.of(self.run)
        while (choice := next_trial(start, self.results)) is not None:
            if self.results and self._left_s() < self._comparison_s() + self._expected_s(choice):
                return
            self._tell(f"Trying {_name(choice)}")
            self.results.append(self._tried(choice, self.pace.steps_s))

    def _compared(self) -> Tuned:
        """The best settings and the run's own in turns, if they are not the same."""
        own, best = self.results[0], fastest(self.results)
        if best is None or best.choice == own.choice or not own.is_measured:
            return Tuned(self.run, tuple(self.results))
        if _are_of_one_model(own.choice, best.choice):
            return Tuned(self.run, tuple(self.results), self._step_by_step(own, best))
        return Tuned(self.run, tuple(self.results), self._trial_by_trial(own, best))

    def _step_by_step(self, own: Result, best: Result) -> Comparison:
        """Two batches on the same model, which take turns with each step."""
        self._tell("Comparing with your settings, step by step")
        build_s = max(own.took_s, best.took_s) - self.pace.steps_s
        seconds = min(2 * LEAST_PAIRS * self.pace.turn_s, max(self.pace.turn_s, self._left_s() - build_s))
        least_s = _FEW_PAIRS * (own.step_s + best.step_s)
        limit_s = max(self.pace.limit_s, _PATIENCE * (build_s + max(seconds, least_s)))
        run = best.choice.applied(self.run)
        made = self._trial(run, seconds, limit_s, self.run)
        speeds = [
            (samples_per_s(self.run, own_s, own.round_s), samples_per_s(run, best_s, best.round_s))
            for own_s, best_s in made.pairs
        ]
        return Comparison(tuple(found / before for before, found in speeds))

    def _trial_by_trial(self, own: Result, best: Result) -> Comparison:
        """Settings that need a model each: both are built again for each turn."""
        speeds = list[float]()
        for number, turn in enumerate(TURNS, 1):
            one_s = max(own.took_s, best.took_s) - self.pace.steps_s + self.pace.turn_s
            if number > 2 * LEAST_PAIRS and self._left_s() < one_s:
                break
            self._tell(f"Comparing with your settings, turn {number} of {len(TURNS)}")
            result = self._tried((own, best)[turn].choice, self.pace.turn_s)
            if not result.is_measured:
                break
            speeds.append(result.samples_per_s)
        return compare(speeds)

    def _tried(self, choice: Choice, seconds: float) -> Result:
        try:
            run = choice.applied(self.run)
        except (ConfigError, PreflightError) as error:
            return Result(choice, "failed", cause=error.cause)
        need = self.room.need_bytes(self.run, run)
        if shortage := self.room.shortage(self.run, run):
            return Result(choice, "too_large", need_bytes=need, cause=shortage)
        made = self._trial(run, seconds, self._limit_s(choice))
        took_s = 0.0 if self._ranks is None else self._ranks.took_s
        if made.outcome != "measured":
            return Result(choice, made.outcome, took_s=took_s, need_bytes=need, cause=made.cause)
        return Result(
            choice,
            "measured",
            samples_per_s(run, made.steps_s, made.round_s),
            step_seconds(run, made.steps_s, made.round_s),
            made.exchange,
            made.round_s,
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
            if not self.results:  # the time begins once the processes are there
                self.deadline += self._ranks.start_s
            return made
        except CancelledError:
            raise
        except RankdeckError as error:  # no process, no folder
            self.close()
            return TrialResult("failed", cause=error.cause)

    def _limit_s(self, choice: Choice) -> float:
        """Seconds after which a trial is given up; one that compiles may take what is left."""
        usual = max(self.pace.limit_s, _PATIENCE * self._expected_s(choice))
        return max(_COMPILE_S, self._left_s() - self._comparison_s()) if choice.compiles else usual

    def _expected_s(self, choice: Choice) -> float:
        """Seconds of a trial, from that of the nearest micro-batch; its steps grow with it."""
        made = [result for result in self.results if result.is_measured]
        if not made:
            return self.pace.limit_s / _PATIENCE
        if choice.compiles:
            return _COMPILE_S
        near = min(made, key=lambda result: abs(result.choice.micro_batch - choice.micro_batch))
        return near.took_s * max(1.0, choice.micro_batch / near.choice.micro_batch)

    def _comparison_s(self) -> float:
        own, best = self.results[0], fastest(self.results)
        if best is None or best.choice == own.choice:
            return 0.0
        turn_s = min(own.took_s, best.took_s) + self.pace.turn_s - self.pace.steps_s
        if _are_of_one_model(own.choice, best.choice):
            return turn_s + max(2 * self.pace.turn_s, LEAST_PAIRS * (own.step_s + best.step_s))
        return 2 * LEAST_PAIRS * turn_s

    def _left_s(self) -> float:
        return self.deadline - time.monotonic()

    def _tell(self, doing: str) -> None:
        share = 1 - self._left_s() / self.seconds
        self.on_progress(Progress(doing, tuple(self.results), min(1.0, max(0.0, share))))


def _are_of_one_model(own: Choice, other: Choice) -> bool:
    """Whether steps of both can be made on the same model, which need not be built again for each turn."""
    return replace(other, compiles=own.compiles) == own.in_micro_batches(other.micro_batch)


def _name(choice: Choice) -> str:
    parts = [f"micro-batch {choice.micro_batch} × {choice.accumulation}"]
    if choice.exchange not in ("", "auto"):
        parts.append(f"all-reduce {choice.exchange}")
    if choice.checkpointing:
        parts.append("gradient checkpointing")
    if choice.compiles:
        parts.append("torch.compile")
    return ", ".join(parts)
