"""One of several real processes that exercise a strategy; prints one JSON line. Run by `test_strategies`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import nn
from torch.distributed.tensor import DTensor

from core.config import RunConfig
from core.config.batch import Batch
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import RankPlace, Replica, Strategy, make_strategy
from workers.strategies.replica import optimizer_state
from workers.training.checkpoint import load_part, take_part, write_part

STEPS = 6


def run(mode: str, rank: int, world: int, folder: Path) -> dict[str, Any]:
    """Trains a few steps, commits after half of them, and says what came of it."""
    rendezvous = (folder / f"rendezvous-{mode}").as_uri()
    place = RankPlace(rank, world, torch.device("cpu"), "gloo", rendezvous, timeout_s=60.0)
    strategy = make_strategy(mode, place, RunConfig(mode=mode), Batch.of(1, world, 1))
    strategy.setup()
    model, data = make_model(world)
    rule = Optimization(weight_decay=0.1, clip_norm=1.0)
    replica = strategy.replicate(model, rule, 0.01, Precision("fp32", place.device))
    flags = []
    for step in range(STEPS):
        if step == STEPS // 2:
            write_part(folder, take_part(strategy, replica, step, {"step": step}))
        train_step(strategy, replica, data[step])
        flags.append(strategy.agree(step if rank == world - 1 else 0))
    flags.append(strategy.settle())
    weights = [whole(p).clone() for p in model.parameters()]
    total = strategy.total([float(rank + 1), 2.0])
    strategy.total([0.0])  # every rank's part lies on disk
    load_part(folder, strategy, replica)
    for step in range(STEPS // 2, STEPS):
        train_step(strategy, replica, data[step])
    again = [whole(p) for p in model.parameters()]
    wait = replica.sync_wait_s()
    strategy.close()
    listening = [c.laddr.ip for c in psutil.Process().net_connections("inet") if c.status == psutil.CONN_LISTEN]
    return {
        "flags": flags,
        "sum": float(sum(w.double().sum() for w in weights)),
        "total": total,
        "resumed_bit_equal": all(torch.equal(a, b) for a, b in zip(weights, again, strict=True)),
        "held": sum(len(value) for value in optimizer_state(replica.optimizer).values()),
        "parameters": len(weights),
        "exchange": strategy.counters().get("exchange"),
        "listening": sorted(set(listening)),
        "waited": wait is not None and wait >= 0,
    }


def whole(parameter: torch.Tensor) -> torch.Tensor:
    """All of a parameter, also where this rank holds some of its rows only; all ranks call it."""
    tensor = parameter.detach()
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def make_model(world: int) -> tuple[nn.Module, torch.Tensor]:
    """The same model everywhere, and a global batch a step for so many ranks."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 1))
    return model, torch.randn(STEPS, 2 * world * 4, 4)


def train_step(strategy: Strategy, replica: Replica, data: torch.Tensor) -> None:
    """Two micro-batches of this rank's contiguous share."""
    share = data.chunk(strategy.group_size)[strategy.group_rank]
    for number, part in enumerate(share.chunk(2)):
        with replica.micro_batch(last=number == 1):
            replica.backward(replica.module(part).square().mean() / 2, last=number == 1)
    replica.update()


if __name__ == "__main__":
    seeding.seed_everything(3)
    sys.stdout.write(json.dumps(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))) + "\n")
