"""Operations of one optimizer step of MiniGPT at GPT-2's depth, as the trainer makes it: in the model, and besides it.

    pytest -m benchmark -s tests/benchmarks/bench_step_operations.py

Counted on the CPU, so no GPU is needed: each operation is about a kernel there. Views are not counted, and an operation
on all parameters at once counts as one.
"""

from __future__ import annotations

from typing import Final

import pytest

pytest.importorskip("torch", reason="makes real steps")

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.training.workers.training.lone_rank import SAMPLES, step_operations
from workers.optim.optimizer import Optimization
from workers.recipes.minigpt.model import MiniGPT, Shape
from workers.training.task import Task

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

LENGTH: Final = 32
COPIES: Final = ("copy_", "cat", "stack", "clone", "contiguous")


@pytest.mark.parametrize("bias", [True, False])
def test_operations_of_a_step(bias: bool) -> None:
    torch.manual_seed(0)
    data = torch.randint(0, 256, (SAMPLES, LENGTH + 1))

    def loss(model: nn.Module, window: Tensor) -> Tensor:
        return F.cross_entropy(model(window[:, :-1]).flatten(0, 1).float(), window[:, 1:].flatten())

    task = Task(
        MiniGPT(Shape(256, LENGTH, n_layer=12, n_head=4, n_embd=64, bias=bias)),
        lambda indices: data[torch.from_numpy(indices)],
        loss,
        optimization=Optimization(weight_decay=0.1, clip_norm=1.0),
    )
    found = step_operations(task, 4, precision="bf16")
    model, outside = found.numbers
    copies = sum(found.model.get(name, 0) for name in COPIES)
    words = "with biases" if bias else "without biases"
    print(f"{words:15} {model} in the model ({copies} of them copies), {outside} besides it, {found.waits} waited for")
    assert model > 10 * outside > 0
