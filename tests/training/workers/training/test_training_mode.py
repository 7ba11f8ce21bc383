"""Which modules train: as a recipe hands its model over, whatever an evaluation or a sampled text does in between."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="looks at modules")

import torch
from torch import Tensor, nn

from tests.training.rank_program import CPU
from workers.optim.precision import Precision
from workers.strategies import RankPlace, SingleStrategy
from workers.training.evaluation import Evaluation
from workers.training.training_mode import begin_training, evaluating, evaluating_parts


class Pretrained(nn.Module):
    """A part as libraries give it back: in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.BatchNorm1d(2))

    @classmethod
    def from_pretrained(cls) -> Pretrained:
        return cls().eval()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


class Classifier(nn.Module):
    """A head on such a part, and a normalisation that is frozen."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.norm, self.head = body, nn.BatchNorm1d(2), nn.Linear(2, 1)
        self.norm.eval()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.norm(self.body(x)))
        return out


def flags(model: nn.Module) -> dict[str, bool]:
    return {name: module.training for name, module in model.named_modules()}


def test_a_model_in_evaluation_mode_is_put_into_training_mode() -> None:
    model = Pretrained.from_pretrained()
    begin_training(model)
    assert all(flags(model).values())


def test_a_pretrained_part_trains_and_a_frozen_layer_stays() -> None:
    model = Classifier(Pretrained.from_pretrained())
    begin_training(model)
    assert [name for name, training in flags(model).items() if not training] == ["norm"]
    assert evaluating_parts(model) == []


def test_a_frozen_pretrained_part_stays_in_evaluation_mode() -> None:
    model = Classifier(Pretrained.from_pretrained().requires_grad_(False))
    begin_training(model)
    assert not model.body.training and model.head.training
    assert evaluating_parts(model) == []


def test_a_part_that_the_recipe_put_into_evaluation_stays_and_is_named() -> None:
    model = Classifier(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))).eval())
    before = flags(model)
    begin_training(model)
    assert flags(model) == before
    assert evaluating_parts(model) == ["body"]


def test_an_evaluation_puts_each_modules_own_flag_back() -> None:
    model = Classifier(Pretrained())
    before = flags(model)
    with evaluating(model):
        assert not any(flags(model).values())
    assert flags(model) == before

    def batch(indices: Any) -> Tensor:
        return torch.ones(len(indices), 2)

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        assert not any(flags(model).values())
        return model(x).mean()

    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    Evaluation(4, 4, 2, batch, loss, Precision("fp32", CPU)).measure(model, strategy)
    assert flags(model) == before
