"""Training time and energy of a run, counted over its attempts, and the stop that follows once."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import orjson
import pytest

from core.host.states import AttemptPhase
from core.host.watches.early_stop import StopReason, StopWatch
from core.launch.stop_rules import StopRules
from core.run_folder.state import RunState

pytestmark = pytest.mark.windows


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
    assert run.published() == {"trained_s": 133.0, "energy_j": None}


def test_a_limit_stops_once_and_is_an_alert() -> None:
    run = Run(StopRules(max_s=10.0), trained_s=8.0)
    run.train(0.0, 1.0, 2.5, 3.0)
    (reason,) = run.stops
    assert reason.rule == "max_hours"
    (said,) = run.services.stream.emit.call_args_list
    assert said.args == ("alert",) and said.kwargs["kind"] == "early_stop" and said.kwargs["cause"] == reason.cause


def test_energy_is_what_counters_gained_while_the_run_trained() -> None:
    run = Run(StopRules(max_j=1000.0), energy_j=500.0)
    run.watch.sampled([{"uuid": "GPU-0", "energy_j": 7000.0}])
    run.watch.sampled([{"uuid": "GPU-0", "energy_j": 7300.0}])  # not training yet
    run.train(0.0, 0.1)
    run.watch.sampled([{"uuid": "GPU-0", "energy_j": 7500.0}, {"uuid": "host"}, {"uuid": "GPU-1", "energy_j": 5.0}])
    assert run.published()["energy_j"] == 700.0
    run.watch.sampled([{"uuid": "GPU-0", "energy_j": 10.0}, {"uuid": "GPU-1", "energy_j": 105.0}])  # a new driver
    assert run.published()["energy_j"] == 800.0
    run.watch.sampled([{"uuid": "GPU-0", "energy_j": 260.0}])
    run.train(0.2)
    assert [reason.rule for reason in run.stops] == ["max_kwh"]


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
