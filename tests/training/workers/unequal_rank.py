"""One of several real processes with unequal shares of each batch; prints one JSON line. Run by `test_unequal`.

The same `train` runs in one process alone, so that what comes out can be compared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.ledger.ledger import Ledger
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import RankPlace, Replica, Strategy
from workers.strategies.ddp import DdpStrategy
from workers.strategies.zero import ZeroStrategy
from workers.training.batches import ChunkPlan, GroupBatches

MICRO, STEPS = 4, 5
PLAN = ChunkPlan(samples=14 * MICRO * STEPS - 17, samples_per_block=100, chunk_size=20, seed=3)


def data() -> Tensor:
    """Samples, shape (samples, 8)."""
    return torch.randn(PLAN.samples, 8, generator=torch.Generator().manual_seed(2))


def make_model() -> nn.Module:
    """The same everywhere."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(7, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 1))


def batches(strategy: Strategy, shares: tuple[int, ...] | None) -> GroupBatches:
    """The replica group's stream; every process has a ledger of its own, which all grant the same."""
    ledger = Ledger.new({"path": "x"}, PLAN.samples, PLAN.samples_per_block, PLAN.chunk_size, PLAN.seed, 1, 1, 1)
    return GroupBatches(
        PLAN,
        lambda sequence: ledger.claim(0, sequence),
        14 * MICRO,
        MICRO,
        strategy.group_rank,
        strategy.group_size,
        shares=shares,
    )


def train(strategy: Strategy, shares: tuple[int, ...] | None) -> dict[str, Any]:
    """An epoch whose last batch is short; gradients of every step, and the weights at the end."""
    model, samples = make_model(), data()
    rule = Optimization(weight_decay=0.1, clip_norm=0.5)
    replica = strategy.replicate(model, rule, 0.01, Precision("fp32", strategy.place.device))
    stream = batches(strategy, shares)
    micro_batches: list[int] = []
    norms: list[float] = []
    while (batch := stream.next(len(norms) + 1)) is not None:
        micro_batches.append(len(batch.micro_batches))
        last = len(batch.micro_batches) - 1
        for number, micro in enumerate(batch.micro_batches):
            with replica.micro_batch(last=number == last):
                replica.backward(loss(replica, samples, micro.indices) * micro.weight, last=number == last)
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        if not norms:
            first = flat(gradients)
        norms.append(float(replica.update()))
    return {"micro_batches": micro_batches, "norms": norms, "gradient": first, "weights": flat(model.parameters())}


def loss(replica: Replica, samples: Tensor, indices: np.ndarray[Any, np.dtype[np.int64]]) -> Tensor:
    """Mean squared error of the last column from the others."""
    part = samples[torch.from_numpy(indices)]
    return F.mse_loss(replica.module(part[:, :7]), part[:, 7:])


def flat(tensors: Any) -> list[float]:
    """All numbers of some tensors."""
    return [float(value) for tensor in tensors for value in tensor.detach().flatten()]


def main(arguments: Sequence[str]) -> None:
    """shares… rank world folder: one mode after the other, since starting a process takes longest."""
    rank, world, folder = int(arguments[-3]), int(arguments[-2]), Path(arguments[-1])
    shares = tuple(int(share) for share in arguments[:-3])
    outcomes = {}
    for kind in (DdpStrategy, ZeroStrategy):
        rendezvous = (folder / f"rendezvous-{kind.name}").as_uri()
        strategy = kind(RankPlace(rank, world, torch.device("cpu"), "gloo", rendezvous, timeout_s=60.0))
        strategy.setup()
        outcomes[kind.name] = train(strategy, shares)
        strategy.close()
    sys.stdout.write(json.dumps(outcomes) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
