"""Early stop: decides from a run's evaluations and training time whether it ends, and ends it.

Independent ranks evaluate models of their own, so each has a patience of its own: the run stops when no rank improves
any more, and the best of all ranks counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from core.checkpoints.store import Checkpoint
from core.formatting import duration, number
from core.host.ranks import Rank
from core.host.services import HostServices
from core.host.states import AttemptPhase
from core.host.watches.watch import Watch
from core.launch.stop_rules import StopRules
from core.metrics.metrics_file import MetricsTail, parse_line
from core.run_folder.state import RunState

PUBLISH_EVERY_S: Final = 1.0
# A longer time between two ticks was no training: the machine slept.
LONGEST_PAUSE_S: Final = 30.0
_RELEVANT: Final = (b'"eval"', b'"launch"')


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation; `value` is None where the compared metric was missing or not finite."""

    rank: int
    step: int
    value: float | None


@dataclass(frozen=True, slots=True)
class StopReason:
    """A rule that stops a run: "early_stop_patience", "stop_at", "max_hours" or "disk_reserve", and the cause."""

    rule: str
    cause: str


@dataclass(frozen=True, slots=True)
class StopProgress:
    """The progress of a run towards its stop rules.

    Attributes:
        evaluations: All that led to the present weights, by rank and in order.
        reached: The newest value of the target's metric and its step.
        merged: The validation loss of independent ranks' newest merge, made when they stop.
    """

    evaluations: Mapping[int, tuple[Evaluation, ...]] = field(default_factory=dict)
    reached: tuple[float, int] | None = None
    merged: float | None = None

    def took(self, rules: StopRules, line: Mapping[str, Any]) -> StopProgress:
        rank, step, event = line.get("rank"), line.get("step"), line.get("event")
        if event == "merge":
            return dataclasses.replace(self, merged=_lowest(line.get("val_losses")))
        if not isinstance(rank, int) or not isinstance(step, int):
            return self
        after, target = self, rules.target
        value = _finite(line.get(rules.metric))
        if target is not None and value is not None and (event == "eval" or (rules.in_steps and event == "step")):
            after = dataclasses.replace(after, reached=(value, step))
        if event == "eval" and (value is not None or not rules.in_steps or rules.metric in line):
            own = (*self.evaluations.get(rank, ()), Evaluation(rank, step, value))
            after = dataclasses.replace(after, evaluations={**self.evaluations, rank: own})
        return after

    def taken_back(self, resumed_from: Mapping[str, int] | None) -> StopProgress:
        if resumed_from is None:
            return dataclasses.replace(self, merged=None)
        kept = {
            rank: tuple(one for one in own if one.step <= resumed_from.get(str(rank), one.step))
            for rank, own in self.evaluations.items()
        }
        evaluations = {rank: own for rank, own in kept.items() if own}
        return dataclasses.replace(self, evaluations=evaluations, reached=None, merged=None)

    def best(self, rules: StopRules) -> Evaluation | None:
        found: Evaluation | None = None
        for one in (one for own in self.evaluations.values() for one in own):
            if one.value is not None and (found is None or rules.is_better(one.value, found.value or 0.0)):
                found = one
        return found

    def stale(self, rules: StopRules) -> int:
        return min((_stale(own, rules) for own in self.evaluations.values()), default=0)


def read_progress(rules: StopRules, lines: Iterable[Mapping[str, Any]], progress: StopProgress) -> StopProgress:
    for line in lines:
        if line.get("event") == "launch":
            resumed = line.get("resumed_from")
            progress = progress.taken_back(resumed if isinstance(resumed, dict) else None)
        else:
            progress = progress.took(rules, line)
    return dataclasses.replace(progress, reached=None)


def stop_after_evaluation(rules: StopRules, progress: StopProgress) -> StopReason | None:
    target, reached = rules.target, progress.reached
    if target is not None and reached is not None and not rules.is_better(target.value, reached[0]):
        at = f"{number(reached[0], 4)} at step {reached[1]:,} (target: {target.value:g} or {target.better})"
        return StopReason("stop_at", f"{rules.label or rules.metric} has reached {at}.")
    stale, patience = progress.stale(rules), rules.patience
    if patience is None or stale < patience:
        return None
    best, many = progress.best(rules), f"{stale} evaluation{'s' if stale != 1 else ''}"
    found = f"; best {number(best.value, 4)} at step {best.step:,}" if best is not None else ""
    return StopReason(
        "early_stop_patience",
        f"{rules.label or rules.metric} has not improved by more than {rules.min_delta:g} in {many}{found}.",
    )


def best_checkpoint(
    rules: StopRules, progress: StopProgress, checkpoints: Sequence[Checkpoint]
) -> tuple[Checkpoint, Evaluation] | None:
    """The checkpoint with the best evaluated weights, and that evaluation; None without evaluated weights."""
    values = {(rank, one.step): one for rank, own in progress.evaluations.items() for one in own}
    best: tuple[Checkpoint, Evaluation] | None = None
    for checkpoint in checkpoints:
        for rank, position in checkpoint.positions.items():
            one = values.get((rank, position.step))
            if one is None or one.value is None or rank in checkpoint.diverged:
                continue
            if best is None or rules.is_better(one.value, best[1].value or 0.0):
                best = checkpoint, one
    return best


def _stale(own: Sequence[Evaluation], rules: StopRules) -> int:
    best, since = None, 0
    for one in own:
        better = one.value is not None and (best is None or _gain(rules, one.value, best) > rules.min_delta)
        best, since = (one.value, 0) if better else (best, since + 1)
    return since


def _gain(rules: StopRules, value: float, best: float) -> float:
    return value - best if rules.is_higher_better else best - value


def _lowest(losses: object) -> float | None:
    values = losses.values() if isinstance(losses, Mapping) else ()
    return min((value for loss in values if (value := _finite(loss)) is not None), default=None)


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


class StopWatch(Watch):
    def __init__(
        self, services: HostServices, rules: StopRules, first: RunState, stop: Callable[[StopReason], None]
    ) -> None:
        self.rules = rules
        self._services = services
        self._stop = stop
        self._progress = StopProgress()
        self._trained_s = first.trained_s
        self._energy_j = first.energy_j
        self._counters: dict[str, float] = {}
        self._ticked: float | None = None
        self._published_s = first.trained_s
        self._reason: StopReason | None = None

    def read(self, metrics: Path) -> None:
        if not self.rules.any:
            return
        tail = MetricsTail(metrics)
        while lines := tail.read():
            found = (parse_line(line) for line in lines if any(name in line for name in _RELEVANT))
            self._progress = read_progress(self.rules, found, self._progress)

    def launched(self, resumed_from: Mapping[str, int] | None) -> None:
        self._ticked = None
        self._counters.clear()
        self._progress = self._progress.taken_back(resumed_from)

    def take(self, _rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        if not self.rules.any:
            return
        for line in lines:
            before, self._progress = self._progress, self._progress.took(self.rules, line)
            if self._progress is not before:
                self._decide(stop_after_evaluation(self.rules, self._progress))

    def tick(self, now: float, phase: AttemptPhase) -> None:
        training = phase is AttemptPhase.TRAINING
        before, self._ticked = self._ticked, now if training else None
        if before is None or not training:
            return
        self._trained_s += min(now - before, LONGEST_PAUSE_S)
        if self._trained_s - self._published_s >= PUBLISH_EVERY_S:
            self.publish()
        if self.rules.max_s is not None and self._trained_s >= self.rules.max_s:
            trained = duration(self._trained_s)
            self._decide(StopReason("max_hours", f"The run has trained for {trained}, its time limit."))

    async def close(self) -> None:
        self.publish()

    def publish(self) -> None:
        self._published_s = self._trained_s
        energy_j = None if self._energy_j is None else round(self._energy_j, 3)
        self._services.status.progress(trained_s=round(self._trained_s, 3), energy_j=energy_j)

    def sampled(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            counter, uuid = row.get("energy_j"), str(row.get("uuid"))
            if not isinstance(counter, int | float):
                continue
            before, self._counters[uuid] = self._counters.get(uuid, counter), counter
            gained = max(0.0, counter - before) if self._ticked is not None else 0.0
            self._energy_j = (self._energy_j or 0.0) + gained

    def best_of(self, checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, Evaluation] | None:
        return best_checkpoint(self.rules, self._progress, checkpoints) if self.rules.any else None

    def pinned(self, checkpoints: Sequence[Checkpoint]) -> tuple[int, ...]:
        best = self.best_of(checkpoints)
        return () if best is None else (best[0].number,)

    def model(self, checkpoints: Sequence[Checkpoint]) -> tuple[Path, ...]:
        """The best weights, if a rule has ended the run and a checkpoint holds those of the best evaluation.

        Empty where the last weights are the ones to export, such as those of a better merge.
        """
        found, best = self.best_of(checkpoints), self._progress.best(self.rules)
        if self._reason is None or found is None or best is None or found[1].value != best.value:
            return ()
        merged = self._progress.merged
        if merged is not None and self.rules.metric == "val_loss" and merged < (best.value or 0.0):
            return ()  # what the ranks learned after their last evaluations is better still
        return found[0].weights(found[1].rank)

    def _decide(self, reason: StopReason | None) -> None:
        if reason is None or self._reason is not None:
            return
        self._reason = reason
        self._services.stream.emit(
            "alert",
            kind="early_stop",
            step=self._services.status.state.step,
            rule=reason.rule,
            title="Stopping early",
            cause=reason.cause,
            next_step=f"{self._end()} To train further, resume it with another limit.",
        )
        self._stop(reason)

    def _end(self) -> str:
        if self.rules.in_steps:
            return "The program was asked to stop."
        best = "" if self._progress.best(self.rules) is None else ", and its best weights are exported"
        return f"The run is being saved and stopped{best}."
