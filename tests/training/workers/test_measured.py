"""Figures beside the loss: averaged as the loss is, in steps and in evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from core.config import RunConfig
from core.config.batch import Batch
from core.protocol.messages import DataReady
from tests.helpers.hosted_run import host, lines, make_run
from workers.measure.run import NoHost
from workers.optim.precision import Precision
from workers.strategies import RankPlace
from workers.strategies.single import SingleStrategy
from workers.training.batches import Indices
from workers.training.evaluation import Evaluation
from workers.training.session import Session
from workers.training.task import LossAndMetrics, Task

CPU = torch.device("cpu")


def loss(_: nn.Module, batch: Tensor) -> LossAndMetrics:
    return LossAndMetrics(batch.mean() * 100, {"loss": batch.mean(), "squares": batch.square().mean()})


def test_an_evaluation_averages_every_figure_by_samples() -> None:
    evaluation = Evaluation(5, 5, 2, lambda i: torch.from_numpy(i).double() + 1, loss, Precision("fp32", CPU))
    assert evaluation.measure(nn.Identity(), SingleStrategy(RankPlace(0, 1, CPU))) == (3.0, {"val_squares": 11.0})


@pytest.mark.parametrize("gathers", [True, False])
def test_passes_that_gather_weights_return_what_they_leave(monkeypatch: pytest.MonkeyPatch, gathers: bool) -> None:
    returned: list[int] = []
    monkeypatch.setattr("workers.training.evaluation.give_back_spare_memory", lambda: returned.append(1))
    evaluation = Evaluation(5, 5, 2, lambda i: torch.from_numpy(i).double() + 1, loss, Precision("fp32", CPU))
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    strategy.forward_is_collective = gathers
    assert evaluation.measure(nn.Identity(), strategy)[0] == 3.0
    assert len(returned) == 4 * gathers  # three parts of the samples, and one for a rank without a share


class OneOf(SingleStrategy):
    def __init__(self, rank: int, size: int) -> None:
        super().__init__(RankPlace(rank, size, CPU))
        self.group_rank, self.group_size = rank, size
        self.sums: list[float] = []

    def total(self, values: Sequence[float]) -> list[float]:
        self.sums = list(values)
        return self.sums


def session(micro_batch: int, **settings: Any) -> Session:
    no_host: Any = NoHost()
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    batch, data = Batch.of(micro_batch, 1, 1), DataReady(10, 97)
    return Session(RunConfig(**settings), Path(), strategy, batch, no_host, no_host, data=data)


@pytest.mark.parametrize("micro_batch", [1, 2, 3, 4, 7, 8, 64])
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize(("wanted", "expected"), [(None, 97), (40, 40), (1, 1), (97, 97), (500, 97)])
def test_the_same_samples_are_measured_however_they_are_cut(
    micro_batch: int, ranks: int, wanted: int | None, expected: int
) -> None:
    seen: list[int] = []

    def batch(indices: Indices) -> Tensor:
        assert len(indices) <= micro_batch
        seen.extend(indices.tolist())
        return torch.from_numpy(indices).double() ** 2

    task = Task(nn.Identity(), batch, loss, val_batch=batch)
    evaluation = Evaluation.of(task, session(micro_batch, val_samples=wanted), Precision("fp32", CPU))
    assert evaluation is not None
    sums = []
    for rank in range(ranks):
        strategy = OneOf(rank, ranks)
        evaluation.measure(nn.Identity(), strategy)
        sums.append(strategy.sums)
    count, total, _ = (sum(values) for values in zip(*sums, strict=True))
    measured = np.floor(np.linspace(0, 96, expected))
    assert count == expected and total / count == pytest.approx((measured**2).mean(), rel=1e-12)
    if ranks <= expected:  # a rank without a share makes a pass that does not count
        assert sorted(seen) == measured.tolist()


@pytest.mark.parametrize(
    ("task", "settings", "limit"),
    [
        ({}, {}, 1_000),
        ({"val_samples": 5_000}, {}, 5_000),
        ({"val_samples": 5_000}, {"val_samples": 10}, 10),
    ],
)
def test_who_says_how_many_samples_are_measured(task: Any, settings: Any, limit: int) -> None:
    made = Task(nn.Identity(), lambda i: torch.ones(len(i)), loss, val_batch=lambda i: torch.ones(len(i)), **task)
    running = session(8, **settings)
    precision = Precision("fp32", CPU)
    before = Evaluation.of(made, running, precision)
    running.batch = Batch.of(4, 1, 2)  # after memory ran out
    after = Evaluation.of(made, running, precision)
    assert before is not None and after is not None
    assert (before.limit, after.limit, before.micro_batch, after.micro_batch) == (limit, limit, 8, 4)


def test_a_loss_alone_is_its_own_figure_and_holds_no_graph() -> None:
    weight = torch.ones((), requires_grad=True)
    returned = LossAndMetrics.of(weight * 2)
    assert returned.loss.requires_grad and not returned.metrics["loss"].requires_grad
    beside = LossAndMetrics.of(LossAndMetrics(weight * 2, {"size": weight * 3}))
    assert {name: float(value) for name, value in beside.metrics.items()} == {"loss": 2.0, "size": 3.0}
    assert not beside.metrics["size"].requires_grad


def test_the_older_name_is_still_read() -> None:
    from workers.recipe_api import Measured

    returned = LossAndMetrics.of(Measured(torch.ones(()), figures={"size": torch.ones(()) * 3}))
    assert {name: float(value) for name, value in returned.metrics.items()} == {"loss": 1.0, "size": 3.0}


TRAIN = """
import numpy as np
import torch

from workers.recipe_api import Measured, PreparedData, Run, Task


def main(run: Run) -> None:
    run.prepare(lambda folder: PreparedData(samples=64, val_samples=4))

    def loss(model, batch):
        error = (model(batch[:, None])[:, 0] - batch).square().mean()
        return Measured(error * 7, {"loss": error, "mean_number": batch.mean()})

    numbers = lambda i: torch.from_numpy(i).float()
    run.fit(Task(torch.nn.Linear(1, 1), numbers, loss, val_batch=numbers))
"""


@pytest.mark.slow
def test_figures_of_a_run_stand_beside_its_loss(tmp_path: Path) -> None:
    """Two ranks with two micro-batches each: what is charted is the mean over them, the loss that was said."""
    recipe = tmp_path / "numbers"
    recipe.mkdir()
    manifest = 'format = "rankdeck-recipe"\nversion = 1\nname = "numbers"\ntitle = "N"\ndescription = "N"\n'
    (recipe / "recipe.toml").write_text(manifest, encoding="utf-8")
    (recipe / "train.py").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "any.txt").write_text("any", encoding="utf-8")
    store = make_run(
        tmp_path / "run", tmp_path / "any.txt", "ddp", 2,
        recipe=str(recipe), options={}, epochs=1, batch_size=4, grad_accum_steps=2, eval_every=2, dataset_chunk_size=64,
    )  # fmt: skip
    assert host(store) == 0
    steps = lines(store, "step")
    assert len(steps) == 8 and np.mean([line["mean_number"] for line in steps]) == pytest.approx(31.5)
    assert lines(store, "eval")[-1]["val_mean_number"] == pytest.approx(1.5)
