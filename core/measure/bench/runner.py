"""`run_bench`: contenders take turns on sets of ranks that stay, so that a busy minute falls on all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun
from core.measure.bench.contenders import SECONDS, TURNS, Contender, Kind, find_contenders, threads_of_device
from core.measure.bench.rows import Bench, Measured
from core.measure.ranks import CancelledError, MeasuringRanks
from core.measure.room import find_shortages
from core.measure.trial import TrialResult, What

# For a contender's first turn, beside the time that is timed: a large model may take minutes to be built.
FIRST_LIMIT_S: Final = 300.0
LEAST_LIMIT_S: Final = 60.0
_PATIENCE: Final = 4.0
_WHAT: Final[dict[Kind, What]] = {Kind.COMM: "sums", Kind.MEMORY: "memory"}


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a benchmark is.

    Attributes:
        doing: What happens now, for a person.
        bench: What was measured so far.
        share: Of the turns that are over, 0 … 1.
    """

    doing: str
    bench: Bench
    share: float = 0.0


Tell = Callable[[Progress], None]


def run_bench(
    kind: Kind,
    run: ResolvedRun,
    counts: Sequence[int] = (),
    *,
    turns: int | None = None,
    seconds: float | None = None,
    on_progress: Tell = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Bench:
    """Measures. Blocks; may be called from any thread. When it returns or raises, no process that it started is left.

    Args:
        kind: What is measured.
        run: On the most devices.
        counts: Numbers of devices; empty: 1, 2, 4, 8 as far as there are devices.
        turns: Of each contender; None: as the kind has it.
        seconds: How long each turn is timed; None: as the kind has it.
        on_progress: Called before each turn.
        cancelled: Asked now and then; True ends it, with what was measured by then.

    Raises:
        ConfigError, PreflightError: This run cannot be measured so.
    """
    contenders = find_contenders(kind, run, counts)
    runner = _Runner(
        kind,
        run,
        contenders,
        TURNS[kind] if turns is None else turns,
        SECONDS[kind] if seconds is None else seconds,
        threads_of_device(run, [contender.devices for contender in contenders]),
        on_progress,
        cancelled,
    )
    for place, cause in find_shortages(run, [contender.run for contender in contenders]).items():
        runner.failures[place] = TrialResult("too_large", cause=cause)
    try:
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
    contenders: tuple[Contender, ...]
    turns: int
    seconds: float
    threads: int
    on_progress: Tell
    cancelled: Callable[[], bool]
    made: list[list[TrialResult]] = field(default_factory=list)
    failures: dict[int, TrialResult] = field(default_factory=dict)
    longest_s: dict[int, float] = field(default_factory=dict)
    _sets: dict[tuple[int, str], MeasuringRanks] = field(default_factory=dict)

    def take_turns(self) -> None:
        self.made = [[] for _ in self.contenders]
        order = list(range(len(self.contenders)))
        done = 0
        for turn in range(self.turns):
            for place in order if turn % 2 == 0 else reversed(order):
                if self.cancelled():
                    raise CancelledError
                self._tell(f"{self.contenders[place].name}, turn {turn + 1} of {self.turns}", done)
                if place not in self.failures:
                    self._take_turn(place)
                done += 1
        self._tell("Done", done)

    def bench(self, *, is_stopped: bool = False) -> Bench:
        measured = [
            Measured(contender, tuple(made), self.failures.get(place))
            for place, (contender, made) in enumerate(zip(self.contenders, self.made, strict=True))
        ]
        return Bench(self.kind, self.run, self.threads, tuple(measured), self.turns, self.seconds, is_stopped)

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
        run = self.contenders[place].run
        limit_s = FIRST_LIMIT_S + _PATIENCE * self.seconds
        if place in self.longest_s:
            limit_s = max(LEAST_LIMIT_S, _PATIENCE * self.longest_s[place])
        key = (run.world_size, run.backend)
        try:
            if key not in self._sets:
                self._sets[key] = MeasuringRanks.of_run(run, "trial", self.cancelled)
            ranks = self._sets[key]
            answered = ranks.make_trial(run, self.seconds, limit_s, what=_WHAT.get(self.kind, "whole_steps"))
            self.longest_s[place] = max(self.longest_s.get(place, 0.0), ranks.took_s)
        except CancelledError:
            raise
        except RankdeckError as error:  # no process, no folder
            answered = TrialResult("failed", cause=error.cause)
        # What memory a process had for one contender must not count for the next.
        if key in self._sets and (self.kind == Kind.MEMORY or not self._sets[key].is_usable):
            self._sets.pop(key).close()
        return answered

    def _tell(self, doing: str, done: int) -> None:
        self.on_progress(Progress(doing, self.bench(), done / (self.turns * len(self.contenders))))
