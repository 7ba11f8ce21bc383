"""`run_bench`: contenders take turns on sets of ranks that stay, so that a busy minute falls on all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun
from core.measure.bench.contenders import SECONDS, TURNS, Kind, find_contenders
from core.measure.bench.report import Bench, Measured, contender_name
from core.measure.ranks import CancelledError, MeasuringRanks
from core.measure.room import find_shortages
from core.measure.trial import TrialResult, What

# For a turn, beside the time that is timed: a large model may take minutes to be built.
BUILD_LIMIT_S: Final = 300.0
_PATIENCE: Final = 4.0


def run_bench(
    kind: Kind,
    run: ResolvedRun,
    counts: Sequence[int] = (),
    *,
    turns: int | None = None,
    seconds: float | None = None,
    on_progress: Callable[[str, float], None] = lambda _doing, _share: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Bench:
    """Measure. Blocks; when it returns or raises, no process that it started is left.

    Args:
        kind: The benchmark.
        run: On the most devices.
        counts: Numbers of devices; empty: 1, 2, 4, 8 as far as there are devices.
        turns: Of each contender; None: as the kind has it.
        seconds: How long each turn is timed; None: as the kind has it.
        on_progress: Called before each turn with a text and the share that is over.
        cancelled: Asked now and then; True ends it, with the figures measured by then.

    Raises:
        ConfigError, PreflightError: This run cannot be measured so.
    """
    contenders = find_contenders(kind, run, counts)
    turns, seconds = turns or TURNS[kind], seconds or SECONDS[kind]
    runner = _Runner(kind, run, contenders, turns, seconds, on_progress, cancelled, [[] for _ in contenders])
    try:
        for place, cause in find_shortages(run, contenders).items():
            runner.failures[place] = TrialResult("too_large", cause=cause)
        runner.take_turns()
    except CancelledError:
        return runner.bench(is_stopped=True)
    finally:
        runner.close()
    return runner.bench()


@dataclass(slots=True)
class _Runner:
    kind: Kind
    run: ResolvedRun
    contenders: tuple[ResolvedRun, ...]
    turns: int
    seconds: float
    on_progress: Callable[[str, float], None]
    cancelled: Callable[[], bool]
    made: list[list[TrialResult]]
    failures: dict[int, TrialResult] = field(default_factory=dict)
    _sets: dict[int, MeasuringRanks] = field(default_factory=dict)

    def take_turns(self) -> None:
        order = list(range(len(self.contenders)))
        for turn in range(self.turns):
            for done, place in enumerate(order if turn % 2 == 0 else reversed(order)):
                if self.cancelled():
                    raise CancelledError
                share = (turn + done / len(order)) / self.turns
                name = contender_name(self.contenders[place])
                self.on_progress(f"{name}, turn {turn + 1} of {self.turns}", share)
                if place not in self.failures:
                    self._take_turn(place)

    def bench(self, *, is_stopped: bool = False) -> Bench:
        measured = [
            Measured(contender, tuple(made), self.failures.get(place))
            for place, (contender, made) in enumerate(zip(self.contenders, self.made, strict=True))
        ]
        return Bench(self.kind, self.run, tuple(measured), is_stopped)

    def close(self) -> None:
        for ranks in self._sets.values():
            ranks.close()
        self._sets.clear()

    def _take_turn(self, place: int) -> None:
        answered = self._answered(place)
        if answered.outcome == "measured":
            self.made[place].append(answered)
        else:
            self.failures[place] = answered

    def _answered(self, place: int) -> TrialResult:
        run = self.contenders[place]
        key = run.world_size
        try:
            if key not in self._sets:
                self._sets[key] = MeasuringRanks.of_run(run, "trial", self.cancelled)
            ranks = self._sets[key]
            what: What = "sums" if self.kind == Kind.COMM else "whole_steps"
            answered = ranks.make_trial(run, self.seconds, BUILD_LIMIT_S + _PATIENCE * self.seconds, what=what)
        except CancelledError:
            raise
        except RankdeckError as error:  # no process, no folder
            answered = TrialResult("failed", cause=error.cause)
        if key in self._sets and not self._sets[key].is_usable:
            self._sets.pop(key).close()
        return answered
