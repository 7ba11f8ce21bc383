"""A run's series: batches, rewinds, and the two time axes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import ChangeSet, RunSeries


def steps(rank: int, first: int, last: int, attempt: int = 1, start_s: float = 1000.0) -> list[bytes]:
    fixed = {"event": "step", "rank": rank, "attempt": attempt}
    rows = ({"ts": start_s + 0.5 * s, "step": s, "loss": 10.0 * attempt + s} for s in range(first, last + 1))
    return [json.dumps(fixed | row).encode() for row in rows]


def launch(resumed_from: dict[str, int] | None) -> bytes:
    return json.dumps({"ts": 1.0, "event": "launch", "rank": -1, "attempt": 1, "resumed_from": resumed_from}).encode()


def test_a_resumed_attempt_replaces_what_it_trains_again() -> None:
    run = RunSeries()
    run.apply(parse_lines([launch(None), *steps(0, 1, 20), *steps(1, 1, 18)]))
    again = [*steps(0, 11, 12, attempt=2), *steps(1, 10, 12, attempt=2)]
    change = run.apply(parse_lines([launch({"0": 10, "1": 9}), *again]))
    assert change.rewound
    assert change.groups == {"rank0", "rank1"}
    assert run.ranks() == [0, 1]
    assert (run.rank(0).rows, run.rank(1).rows) == (12, 12)
    assert run.rank(0).value_at("loss", "step", 10) == 20.0
    assert run.rank(0).value_at("loss", "step", 11) == 31.0
    assert run.rank(1).value_at("loss", "step", 9) == 19.0
    assert run.rank(1).value_at("loss", "step", 10) == 30.0
    assert len(run.events_of("launch")) == 2


def test_the_clock_is_that_of_the_longest_rank() -> None:
    run = RunSeries()
    assert run.clock().rows == 0
    run.apply(parse_lines([launch(None), *steps(0, 1, 20), *steps(1, 1, 18)]))
    assert run.clock() is run.rank(0)
    run.apply(parse_lines(steps(1, 19, 30)))
    assert run.clock() is run.rank(1)
    run.apply(parse_lines([launch({"0": 20, "1": 9})]))
    assert run.clock() is run.rank(0)


def test_evaluations_after_the_resumed_step_go_too() -> None:
    run = RunSeries()
    fixed = {"event": "eval", "rank": 0, "val_loss": 1.0}
    evals = [json.dumps(fixed | {"ts": s, "step": s}).encode() for s in (5, 10, 15)]
    run.apply(parse_lines([*steps(0, 1, 20), *evals, launch({"0": 10})]))
    assert run.evals.rows == 2


def test_steps_and_times_are_turned_into_each_other() -> None:
    run = RunSeries()
    run.apply(parse_lines(steps(0, 1, 5000)))
    assert run.times_of(100, 200) == (1050.0, 1100.0)
    assert run.steps_of(1050.0, 1100.2) == (100, 201)
    positions = run.step_positions(np.array([900.0, 1050.0, 1050.25, 3500.0, 3501.0]))
    assert np.isnan(positions[[0, 4]]).all()
    np.testing.assert_allclose(positions[1:4], [100, 100.5, 5000], atol=4)
    near = run.step_positions(np.linspace(1050.0, 1060.0, 30))
    np.testing.assert_allclose(near, np.linspace(100, 120, 30), atol=1e-6)
    assert run.times_of(4990, 6000) == (3495.0, 3500.0)
    run.apply(parse_lines(steps(0, 5001, 6000)))
    assert run.times_of(4990, 6000) == (3495.0, 4000.0), "what is new counts at once"


def test_extent_is_that_of_steps_not_of_devices() -> None:
    run = RunSeries()
    device = {"ts": 500.0, "event": "device", "rank": -1, "uuid": "cpu:0", "utilization_percent": 5}
    run.apply(parse_lines([*steps(0, 1, 10), json.dumps(device).encode()]))
    assert run.extent("step") == (1, 10)
    assert run.extent("ts") == (1000.5, 1005.0)
    assert run.devices() == ["cpu:0"]
    assert run.device("cpu:0").last("utilization_percent") == 5


def test_an_empty_run_answers_everything_with_nothing() -> None:
    run = RunSeries()
    assert run.extent("step") is None
    assert run.times_of(0, 1) is None
    assert np.isnan(run.step_positions(np.array([1.0]))).all()
    assert run.ranks() == []
    assert run.evals.rows == 0
    assert not run.apply(parse_lines([]))


def test_changes_add_up() -> None:
    first = ChangeSet(frozenset({"rank0"}), ({"event": "a"},))
    second = ChangeSet(frozenset({"eval"}), ({"event": "b"},), rewound=True)
    assert first | second == ChangeSet(frozenset({"rank0", "eval"}), ({"event": "a"}, {"event": "b"}), rewound=True)
    assert not ChangeSet()


@pytest.mark.parametrize("old", [0, 3])
def test_old_events_come_before_newer_ones(old: int) -> None:
    run = RunSeries()
    run.apply(parse_lines([launch(None)]))
    run.add_events_before([{"event": "commit", "n": n} for n in range(old)])
    assert [event["event"] for event in run.events] == ["commit"] * old + ["launch"]
