"""Early stop: decides from a run's evaluations, training time and energy whether it ends. Pure.

Independent ranks evaluate models of their own, so each has a patience of its own: the run stops when no rank improves
any more, and the best of all ranks counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.checkpoints.store import Checkpoint
from core.formatting import duration, number
from core.launch.stop_rules import StopRules


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation.

    Attributes:
        value: Of the metric that evaluations are compared by; None where it was missing or not finite.
    """

    rank: int
    step: int
    value: float | None


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a run is stopped by a rule.

    Attributes:
        rule: The setting behind it: "early_stop_patience", "stop_at", "max_hours" or "max_kwh".
    """

    rule: str
    cause: str


@dataclass(frozen=True, slots=True)
class StopProgress:
    """How far a run is towards its stop rules.

    Attributes:
        evaluations: All that led to the present weights, by rank and in order.
        reached: The newest value of the target's metric and its step.
        merged: The validation loss of independent ranks' newest merge, made when they stop.
        trained_s: Seconds of training in all attempts.
    """

    evaluations: Mapping[int, tuple[Evaluation, ...]] = field(default_factory=dict)
    reached: tuple[float, int] | None = None
    merged: float | None = None
    trained_s: float = 0.0
    energy_j: float = 0.0

    def took(self, rules: StopRules, line: Mapping[str, Any]) -> StopProgress:
        """After a metrics line of a rank's."""
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
        """After an attempt began: what was evaluated beyond the step from which a rank continues is void."""
        if resumed_from is None:
            return dataclasses.replace(self, merged=None)
        kept = {
            rank: tuple(one for one in own if one.step <= resumed_from.get(str(rank), one.step))
            for rank, own in self.evaluations.items()
        }
        evaluations = {rank: own for rank, own in kept.items() if own}
        return dataclasses.replace(self, evaluations=evaluations, reached=None, merged=None)

    def best(self, rules: StopRules) -> Evaluation | None:
        """The best evaluation; of equal ones the earliest."""
        found: Evaluation | None = None
        for one in (one for own in self.evaluations.values() for one in own):
            if one.value is not None and (found is None or rules.is_better(one.value, found.value or 0.0)):
                found = one
        return found

    def stale(self, rules: StopRules) -> int:
        """Evaluations since the last improvement, of the rank that improved last."""
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


def stop_by_limit(rules: StopRules, progress: StopProgress) -> StopReason | None:
    """Whether the run has used its time or energy."""
    if rules.max_s is not None and progress.trained_s >= rules.max_s:
        return StopReason("max_hours", f"The run has trained for {duration(progress.trained_s)}, its time limit.")
    if rules.max_j is not None and progress.energy_j >= rules.max_j:
        used = number(progress.energy_j / 3.6e6, 4)
        return StopReason("max_kwh", f"The run's GPUs have used {used} kWh, its energy limit.")
    return None


def best_checkpoint(
    rules: StopRules, progress: StopProgress, checkpoints: Sequence[Checkpoint]
) -> tuple[Checkpoint, Evaluation] | None:
    """The checkpoint with the best evaluated weights, and that evaluation; None where none holds evaluated ones."""
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
