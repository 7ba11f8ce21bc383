"""Figures beside the loss: averaged as the loss is, in steps and in evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.hosted_run import host, lines, make_run
from workers.optim.precision import Precision
from workers.strategies import RankPlace
from workers.strategies.single import SingleStrategy
from workers.training.evaluation import Evaluation
from workers.training.task import LossAndMetrics

CPU = torch.device("cpu")


def loss(_: nn.Module, batch: Tensor) -> LossAndMetrics:
    return LossAndMetrics(batch.mean() * 100, {"loss": batch.mean(), "squares": batch.square().mean()})


def evaluation(samples: int) -> Evaluation:
    return Evaluation(samples, samples, 2, lambda i: torch.from_numpy(i).double() + 1, loss, Precision("fp32", CPU))


class OneOfTwo(SingleStrategy):
    """A rank beside another whose sums are known."""

    def __init__(self, rank: int, other: Sequence[float]) -> None:
        super().__init__(RankPlace(rank, 2, CPU))
        self.other = other
        self.group_rank, self.group_size = rank, 2

    def total(self, values: Sequence[float]) -> list[float]:
        return [a + b for a, b in zip(values, self.other, strict=True)]


def test_an_evaluation_averages_every_figure_by_samples() -> None:
    found = evaluation(5).measure(nn.Identity(), SingleStrategy(RankPlace(0, 1, CPU)))
    assert found == (3.0, {"val_squares": 11.0})


def test_a_rank_without_a_share_knows_the_figures_of_the_others() -> None:
    """One held-out sample on two ranks: one of them has none, and both sum the same numbers."""
    assert evaluation(1).measure(nn.Identity(), OneOfTwo(0, [1.0, 4.0, 16.0])) == (4.0, {"val_squares": 16.0})


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
