"""Steps that are timed: at the beginning of a turn, while threads settle, none counts."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from core.config.batch import Batch
from workers.estimate.meeting import Meeting
from workers.estimate.step_times import LEAST_TURNS, SETTLE_S, TURN_S, StepTimes
from workers.optim.precision import Precision
from workers.training.batches import Indices
from workers.training.task import Task

CPU = torch.device("cpu")


def data(indices: Indices) -> Tensor:
    return torch.ones(len(indices), 512)


def loss(model: nn.Module, batch: Tensor) -> Tensor:
    mean: Tensor = model(batch).mean()
    return mean


def test_steps_count_only_after_some_time_of_each_turn(tmp_path: Path) -> None:
    task = Task(nn.Sequential(*[nn.Linear(512, 512) for _ in range(8)]), data, loss)
    with Meeting(0, 1, tmp_path) as meeting:
        times = StepTimes(task, Precision("fp32", CPU), CPU, Batch.of(8, 1, 1), 64, meeting)
        found = times.measure(1, 1, is_first=True)
    for kind in ("together", "alone"):
        steps = found[kind]["steps"]
        begin = [number for number, step in enumerate(steps) if not step["counts"] and steps[number - 1]["counts"]]
        assert len(begin) >= LEAST_TURNS and begin[0] == 0
        for first, after in zip(begin, [*begin[1:], len(steps)], strict=True):
            counts = [step["counts"] for step in steps[first:after]]
            unsettled = counts.index(True)
            assert not any(counts[:unsettled]) and all(counts[unsettled:])
            assert unsettled * TURN_S >= (len(counts) - unsettled - 1) * SETTLE_S
