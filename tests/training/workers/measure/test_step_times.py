"""Steps that are timed: while threads settle none counts, and medians, waits and shares of what was timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from core.config import RunConfig
from core.config.batch import Batch
from core.measure.estimate.speed import StepFigures
from core.records import read_record
from workers.measure.figures import _passes
from workers.measure.step_times import LEAST_TURNS, SETTLE_S, TURN_S, StepTimes, _Step, _Turns
from workers.training.batches import Indices
from workers.training.task import Task

CPU = torch.device("cpu")


def data(indices: Indices) -> Tensor:
    return torch.ones(len(indices), 512)


def loss(model: nn.Module, batch: Tensor) -> Tensor:
    mean: Tensor = model(batch).mean()
    return mean


def made() -> StepTimes:
    task = Task(nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)]), data, loss, tokens_per_sample=100)
    return StepTimes(_passes(task, RunConfig(precision="fp32"), CPU), Batch.of(8, 1, 1), 32, lambda value: value)


def figures(turns: _Turns, samples: int = 8) -> StepFigures:
    return read_record(StepFigures, made()._values(turns, samples))


def turns(*passes: float, few_s: float = 0.1, **step: Any) -> _Turns:
    steps = [_Step(step.get("begins", False), step.get("prepare_s", 0.0), time_s, 0.5) for time_s in passes]
    return _Turns(1, few_s, steps)


def test_steps_count_only_after_some_time_of_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[_Turns] = []
    values = StepTimes._values
    monkeypatch.setattr(
        StepTimes, "_values", lambda times, kind, samples: kept.append(kind) or values(times, kind, samples)
    )
    found = made().measure(1, 1, is_first=True)
    assert set(found) == {"together", "alone"} and found["together"]["wait_s"] == 0.0
    for kind in kept:
        steps = kind.steps
        begin = [number for number, step in enumerate(steps) if not step.counts and steps[number - 1].counts]
        assert len(begin) >= LEAST_TURNS and begin[0] == 0
        for first, after in zip(begin, [*begin[1:], len(steps)], strict=True):
            counts = [step.counts for step in steps[first:after]]
            unsettled = counts.index(True)
            assert not any(counts[:unsettled]) and all(counts[unsettled:])
            assert unsettled * TURN_S >= (len(counts) - unsettled - 1) * SETTLE_S


def test_the_middle_of_those_that_count() -> None:
    found = figures(turns(1.0, 2.0, 9.0))
    assert (found.pass_s, found.update_s, found.tokens_per_sample) == (2.0, 0.5, 100)
    first = replace(turns(9.0).steps[0], counts=False)
    assert figures(_Turns(1, 0.1, [first, *turns(1.0).steps])).pass_s == 1.0
    assert figures(_Turns(1, 0.1, [first])).pass_s == 9.0, "there is no other"


def test_fewer_samples_are_extended() -> None:
    # 2 samples in 0.4 s and 4 in 0.6 s: 0.1 s each, and 0.2 s whatever the number.
    assert figures(turns(0.6, few_s=0.4), samples=4).pass_s == pytest.approx(1.0)
    assert figures(turns(0.4), samples=2).pass_s == pytest.approx(1.6)


def test_what_a_chunk_needs_is_shared_out_over_its_samples() -> None:
    begins, inside = turns(1.0, begins=True, prepare_s=4.2).steps, turns(1.0, 1.0, prepare_s=0.2).steps
    assert figures(_Turns(1, 0.1, [*begins, *inside])).prepare_s == pytest.approx(0.2 / 8 + 4.0 / 32)
    assert figures(_Turns(1, 0.1, begins)).prepare_s == pytest.approx(4.2 / 32)
