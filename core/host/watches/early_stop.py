"""Early stop: decides from a run's evaluations and training time whether it ends, and ends it.

Independent ranks evaluate models of their own, so each has a patience of its own: the run stops when no rank improves
any more, and the best of all ranks counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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


class StopProgress:
    """The progress of a run towards its stop rules.

    Attributes:
        evaluations: All that led to the present weights, by rank and in order.
        reached: The newest value of the target's metric and its step.
        merged: The validation loss of independent ranks' newest merge, made when they stop.
    """

    def __init__(self, rules: StopRules) -> None:
        self.rules = rules
        # Replaced and never changed: checkpoints are judged on the disk thread.
        self.evaluations: Mapping[int, tuple[Evaluation, ...]] = {}
        self.reached: tuple[float, int] | None = None
        self.merged: float | None = None

    def take(self, line: Mapping[str, Any]) -> bool:
        """Take a metrics line; return whether it changed anything that a rule looks at."""
        rank, step, event = line.get("rank"), line.get("step"), line.get("event")
        if event == "merge":
            self.merged = _lowest(line.get("val_losses"))
        if not isinstance(rank, int) or not isinstance(step, int):
            return False
        rules, value = self.rules, _finite(line.get(self.rules.metric))
        is_evaluated = event == "eval" and (value is not None or not rules.in_steps or rules.metric in line)
        if is_evaluated:
            own = (*self.evaluations.get(rank, ()), Evaluation(rank, step, value))
            self.evaluations = {**self.evaluations, rank: own}
        counts = event == "eval" or (rules.in_steps and event == "step")
        if rules.target is None or value is None or not counts:
            return is_evaluated
        self.reached = value, step
        return True

    def take_back(self, resumed_from: Mapping[str, int] | None) -> None:
        self.merged = None
        if resumed_from is None:
            return
        self.reached = None
        kept = {
            rank: tuple(one for one in own if one.step <= resumed_from.get(str(rank), one.step))
            for rank, own in self.evaluations.items()
        }
        self.evaluations = {rank: own for rank, own in kept.items() if own}

    def read(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take lines of earlier attempts; a target that they reached does not stop this one."""
        for line in lines:
            if line.get("event") == "launch":
                resumed = line.get("resumed_from")
                self.take_back(resumed if isinstance(resumed, dict) else None)
            else:
                self.take(line)
        self.reached = None

    @property
    def best(self) -> Evaluation | None:
        known = [one for own in self.evaluations.values() for one in own if one.value is not None]
        pick = max if self.rules.is_higher_better else min
        return pick(known, key=lambda one: one.value or 0.0, default=None)

    @property
    def stale(self) -> int:
        """The number of evaluations without an improvement, of the rank that improved last."""
        return min((_stale(own, self.rules) for own in self.evaluations.values()), default=0)

    def reason(self) -> StopReason | None:
        rules, target, reached = self.rules, self.rules.target, self.reached
        if target is not None and reached is not None and not rules.is_better(target.value, reached[0]):
            at = f"{number(reached[0], 4)} at step {reached[1]:,} (target: {target.value:g} or {target.better})"
            return StopReason("stop_at", f"{rules.label or rules.metric} has reached {at}.")
        stale, best = self.stale, self.best
        if rules.patience is None or stale < rules.patience:
            return None
        many = f"{stale} evaluation{'s' if stale != 1 else ''}"
        found = f"; best {number(best.value, 4)} at step {best.step:,}" if best is not None else ""
        return StopReason(
            "early_stop_patience",
            f"{rules.label or rules.metric} has not improved by more than {rules.min_delta:g} in {many}{found}.",
        )

    def best_checkpoint(self, checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, Evaluation] | None:
        """The checkpoint with the best evaluated weights, and that evaluation; None without evaluated weights."""
        values = {(rank, one.step): one for rank, own in self.evaluations.items() for one in own}
        best: tuple[Checkpoint, Evaluation] | None = None
        for checkpoint in checkpoints:
            for rank, position in checkpoint.positions.items():
                one = values.get((rank, position.step))
                if one is None or one.value is None or rank in checkpoint.diverged:
                    continue
                if best is None or self.rules.is_better(one.value, best[1].value or 0.0):
                    best = checkpoint, one
        return best


def _stale(own: Sequence[Evaluation], rules: StopRules) -> int:
    best, since, sign = None, 0, 1 if rules.is_higher_better else -1
    for one in own:
        better = one.value is not None and (best is None or sign * (one.value - best) > rules.min_delta)
        best, since = (one.value, 0) if better else (best, since + 1)
    return since


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
        self._progress = StopProgress(rules)
        self._trained_s = first.trained_s
        self._ticked: float | None = None
        self._published_s = first.trained_s
        self._reason: StopReason | None = None

    def read(self, metrics: Path) -> None:
        if not self.rules.any:
            return
        tail = MetricsTail(metrics)
        while lines := tail.read():
            self._progress.read(parse_line(line) for line in lines if any(name in line for name in _RELEVANT))

    def launched(self, resumed_from: Mapping[str, int] | None) -> None:
        self._ticked = None
        self._progress.take_back(resumed_from)

    def take(self, _rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        if not self.rules.any:
            return
        for line in lines:
            if self._progress.take(line):
                self._decide(self._progress.reason())

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
        self._services.status.progress(trained_s=round(self._trained_s, 3))

    def best_of(self, checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, Evaluation] | None:
        return self._progress.best_checkpoint(checkpoints) if self.rules.any else None

    def pinned(self, checkpoints: Sequence[Checkpoint]) -> tuple[int, ...]:
        best = self.best_of(checkpoints)
        return () if best is None else (best[0].number,)

    def model(self, checkpoints: Sequence[Checkpoint]) -> tuple[Path, ...]:
        """The best weights, if a rule has ended the run and a checkpoint holds those of the best evaluation.

        Empty where the last weights are the ones to export, such as those of a better merge.
        """
        found, best = self.best_of(checkpoints), self._progress.best
        if self._reason is None or found is None or best is None or found[1].value != best.value:
            return ()
        merged = self._progress.merged
        if merged is not None and self.rules.metric == "val_loss" and merged < (best.value or 0.0):
            # What the ranks learned after their last evaluations is better still.
            return ()
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
        best = "" if self._progress.best is None else ", and its best weights are exported"
        return f"The run is being saved and stopped{best}."
