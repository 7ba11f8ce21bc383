"""The update rule: schedule, groups, clipping."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import RankPlace, SingleStrategy

ALONE = SingleStrategy(RankPlace(0, 1, torch.device("cpu")))


def test_the_learning_rate_rises_then_falls_along_a_cosine() -> None:
    rule = Optimization(warmup_steps=10, min_lr_ratio=0.1)
    rates = [rule.lr(step, 110, 1.0) for step in range(1, 121)]
    assert rates[0] == pytest.approx(0.1) and rates[9] == pytest.approx(1.0)
    assert rates[59] == pytest.approx(0.55)
    assert rates[109] == pytest.approx(0.1) == rates[119]
    assert all(a >= b for a, b in itertools.pairwise(rates[9:]))


def test_without_warm_up_and_decay_the_rate_is_constant() -> None:
    assert {Optimization().lr(step, 10, 0.5) for step in (1, 5, 10, 20)} == {0.5}


def test_only_matrices_are_decayed() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    optimizer = Optimization(weight_decay=0.2).optimizer(model, 0.1)
    decays = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert {decays[id(p)] for p in model.parameters() if p.dim() == 1} == {0.0}
    assert {decays[id(p)] for p in model.parameters() if p.dim() == 2} == {0.2}


def test_another_optimizer_gets_its_own_options() -> None:
    rule = Optimization(kind=torch.optim.SGD, options={"momentum": 0.9})
    optimizer = rule.optimizer(nn.Linear(2, 2), 0.3)
    assert isinstance(optimizer, torch.optim.SGD)
    assert optimizer.param_groups[0]["momentum"] == 0.9 and optimizer.param_groups[0]["lr"] == 0.3


def test_clipping_shortens_and_zero_only_measures() -> None:
    weight = nn.Parameter(torch.zeros(4))
    weight.grad = torch.full((4,), 3.0)
    model = nn.ParameterList([weight])
    replica = ALONE.replicate(model, Optimization(), 0.1, Precision("fp32", torch.device("cpu")))
    assert float(replica.clip_grad_norm(0.0)) == pytest.approx(6.0)
    assert weight.grad.norm() == pytest.approx(6.0)
    assert float(replica.clip_grad_norm(1.5)) == pytest.approx(6.0)
    assert weight.grad.norm() == pytest.approx(1.5, rel=1e-4)
