"""Whole steps of the probe: what a run does between two steps belongs to its peak."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="makes steps")

import torch
from torch import nn

from core.config import RunConfig
from workers.measure.figures import _make_whole_steps, _passes
from workers.training.task import Task


@pytest.mark.parametrize("writes", [True, False])
def test_the_peak_has_an_evaluation_and_its_text_in_it(writes: bool) -> None:
    done: list[str] = []
    model = nn.Linear(4, 4)

    def loss(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        done.append(f"{'step' if torch.is_grad_enabled() else 'evaluation'} {model.training}")
        return model(batch).square().mean()  # type: ignore[no-any-return]  # a module's call is untyped

    def sample(model: nn.Module) -> str:
        done.append(f"text {model.training}")
        return ""

    task = Task(model=model, batch=lambda indices: torch.ones(len(indices), 4), loss=loss, sample=sample)
    passes = _passes(task, RunConfig(precision="fp32"), torch.device("cpu"))
    _make_whole_steps(passes, 2, lambda: done.append("peak") or 0, writes=writes)
    assert done == ["step True", "step True", "evaluation False", *(["text False"] if writes else []), "peak"]
    assert model.training
