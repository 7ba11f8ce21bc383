"""A small network, its data and a training step, for scenarios of strategies."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from workers.strategies import Replica, Strategy

STEPS: Final = 6


def make_model(world: int) -> tuple[nn.Module, Tensor]:
    """The same model everywhere, and a global batch a step for a number of ranks."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 1))
    return model, torch.randn(STEPS, 2 * world * 4, 4)


def train_step(strategy: Strategy, replica: Replica, data: Tensor) -> None:
    share = data.chunk(strategy.group_size)[strategy.group_rank]
    for number, part in enumerate(share.chunk(2)):
        with replica.micro_batch(last=number == 1):
            replica.backward(replica.module(part).square().mean() / 2, last=number == 1)
    replica.update()
