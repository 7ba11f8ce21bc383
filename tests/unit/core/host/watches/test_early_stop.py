"""Whether a run ends by its rules, as a function of its metrics lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import orjson

from core.checkpoints.store import Checkpoint
from core.config.stop_target import StopTarget
from core.host.states import AttemptPhase
from core.host.watches.early_stop import StopProgress, StopReason, StopWatch
from core.launch.stop_rules import StopRules
from core.protocol.messages import Position
from core.run_folder.state import RunState

PATIENT = StopRules(patience=3)


def evaluations(*values: float | None, rank: int = 0, every: int = 10, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"event": "eval", "rank": rank, "step": every * number, "val_loss": value, **fields}
        for number, value in enumerate(values, 1)
    ]


def after(lines: Iterable[dict[str, Any]], rules: StopRules = PATIENT) -> StopProgress:
    progress = StopProgress(rules)
    for line in lines:
        progress.take(line)
    return progress


def cause(lines: Iterable[dict[str, Any]], rules: StopRules = PATIENT) -> str:
    reason = after(lines, rules).reason()
    return "" if reason is None else reason.cause


def test_it_stops_after_so_many_evaluations_without_an_improvement() -> None:
    assert cause(evaluations(3.0, 2.0, 2.1, 2.2)) == ""
    assert cause(evaluations(3.0, 2.0, 2.1, 2.2, 2.0)) == (
        "val_loss has not improved by more than 0.001 in 3 evaluations; best 2.000 at step 20."
    )


def test_a_small_gain_is_no_improvement_and_adds_up() -> None:
    small = [2.0 - 0.0004 * number for number in range(4)]
    assert cause(evaluations(*small)) == ""  # 0.0012 in three evaluations together
    assert "best 2.000 at step 40" in cause(evaluations(2.0, 1.9999, 1.9998, 1.9997))


def test_what_is_not_finite_is_no_improvement() -> None:
    assert "best 2.000 at step 10" in cause(evaluations(2.0, None, float("nan"), None))
    assert cause(evaluations(None, None, None)).endswith("in 3 evaluations.")


def test_higher_is_better_where_the_recipe_says_so() -> None:
    rules = StopRules(patience=2, metric="val_return", is_higher_better=True)
    lines = [{"event": "eval", "rank": 0, "step": n, "val_return": r} for n, r in enumerate([1.0, 5.0, 4.0, 3.0], 1)]
    assert "best 5.000 at step 2" in cause(lines, rules)


def test_independent_ranks_stop_when_none_of_them_improves() -> None:
    stale, improving = evaluations(2.0, 2.1, 2.2, 2.3, rank=0), evaluations(4.0, 3.5, 3.0, 2.5, rank=1)
    assert cause([*stale, *improving]) == ""
    more = evaluations(*[4.0, 3.5, 3.0, 2.5, 2.5, 2.5, 2.5], rank=1)
    assert "best 2.000 at step 10" in cause([*stale, *more])


def test_a_target_is_reached() -> None:
    rules = StopRules(target=StopTarget("val_loss", 1.2, "lower"))
    assert cause(evaluations(1.21), rules) == ""
    assert cause(evaluations(1.21, 1.2), rules) == "val_loss has reached 1.200 at step 20 (target: 1.2 or lower)."
    assert cause([{"event": "step", "rank": 0, "step": 3, "val_loss": 1.0}], rules) == ""
    script = StopRules(target=StopTarget("loss", 1.2, "lower"), metric="loss", in_steps=True)
    assert "at step 3" in cause([{"event": "step", "rank": 0, "step": 3, "loss": 1.0}], script)


def test_what_is_trained_again_is_evaluated_again() -> None:
    lines = [*evaluations(2.0, 2.1, 2.2), {"event": "launch", "resumed_from": {"0": 10}}]
    progress = StopProgress(StopRules(target=StopTarget("val_loss", 3.0, "lower")))
    progress.read(lines)
    assert progress.stale == 0
    progress.read([*evaluations(2.0, 2.1, 2.2), {"event": "launch", "resumed_from": None}])
    assert progress.stale == 3 and progress.reason() is None


def test_the_best_checkpoint_holds_evaluated_weights() -> None:
    progress = after([*evaluations(3.0, 1.0, 2.0), *evaluations(2.5, 1.5, 0.5, rank=1)])
    held = [checkpoint(1, {0: 10, 1: 10}), checkpoint(2, {0: 20, 1: 21}), checkpoint(3, {0: 25, 1: 26})]
    found = progress.best_checkpoint(held)
    assert found is not None and (found[0].number, found[1].rank, found[1].value) == (2, 0, 1.0)
    diverged = [held[0], checkpoint(2, {0: 20, 1: 21}, diverged=(0,))]
    found = progress.best_checkpoint(diverged)
    assert found is not None and (found[0].number, found[1].rank) == (1, 1)
    assert progress.best_checkpoint([held[2]]) is None


def checkpoint(number: int, steps: dict[int, int], diverged: tuple[int, ...] = ()) -> Checkpoint:
    positions = {rank: Position(step, 0, [], []) for rank, step in steps.items()}
    return Checkpoint(number, Path(str(number)), 0, 0.0, 2, "independent", None, positions, (), (), diverged)


class Run:
    """A stop watch, what it stops and what it says."""

    def __init__(self, rules: StopRules, **state: Any) -> None:
        self.services: Any = Mock()
        self.stops: list[StopReason] = []
        self.watch = StopWatch(self.services, rules, RunState("a run", **state), self.stops.append)

    def train(self, *moments: float) -> None:
        for now in moments:
            self.watch.tick(now, AttemptPhase.TRAINING)

    def published(self) -> dict[str, Any]:
        self.watch.publish()
        found: dict[str, Any] = self.services.status.progress.call_args.kwargs
        return found


def test_only_training_counts_and_no_sleep_of_the_machine() -> None:
    run = Run(StopRules(), trained_s=100.0)
    run.train(0.0, 2.0)
    run.watch.tick(50.0, AttemptPhase.FINISHING)
    run.train(60.0, 61.0, 5000.0)
    assert run.published() == {"trained_s": 133.0}


def test_a_limit_stops_once_and_is_an_alert() -> None:
    run = Run(StopRules(max_s=7200.0), trained_s=7198.0)
    run.train(0.0, 1.0)
    assert run.stops == []
    run.train(2.5, 3.0)
    (reason,) = run.stops
    assert reason == StopReason("max_hours", "The run has trained for 2 h 00 m, its time limit.")
    (said,) = run.services.stream.emit.call_args_list
    assert said.args == ("alert",) and said.kwargs["kind"] == "early_stop" and said.kwargs["cause"] == reason.cause


def test_evaluations_of_earlier_attempts_are_read_and_do_not_stop_it(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    lines: list[dict[str, Any]] = [
        {"event": "eval", "rank": 0, "step": step, "val_loss": loss} for step, loss in ((1, 1.0), (2, 2.0), (3, 2.0))
    ]
    metrics.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines) + b"not json\n")
    run = Run(StopRules(patience=2))
    run.watch.read(metrics)
    run.watch.launched({"0": 3})
    assert run.stops == []
    run.watch.take(Mock(), [{"event": "step", "rank": 0, "step": 4, "loss": 3.0}])
    assert run.stops == []
    run.watch.take(Mock(), [{"event": "eval", "rank": 0, "step": 4, "val_loss": 2.0}])
    assert "in 3 evaluations; best 1.000 at step 1" in run.stops[0].cause
