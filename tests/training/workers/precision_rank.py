"""One of two real processes that train in fp16 with an overflow on one of them; prints one JSON line.

Run by `test_precision`: `python -m tests.training.workers.precision_rank RANK WORLD FOLDER`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from core.config import RunConfig
from core.config.batch import Batch
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import RankPlace, Strategy, make_strategy

MODES = {"ddp": "ddp", "zero 1": "zero", "fsdp": "fsdp"}
STEPS, OVERFLOW = 6, 3
SCALE = 256.0
GROWTH = 2
"""Steps without overflow after which the scale doubles: few, so that this is seen too."""


class Spiky(nn.Module):
    """A small network, and weights whose gradient is whatever the batch says."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 1))
        self.spike = nn.Parameter(torch.zeros(6))

    def forward(self, inputs: Tensor, wanted: Tensor) -> Tensor:
        """One number for each row of `inputs`, shape (n, 8)."""
        out: Tensor = self.net(inputs).float() + (self.spike.float() * wanted).sum()
        return out


def train(strategy: Strategy, precision: Precision, overflow_rank: int | None = None) -> dict[str, Any]:
    """A few steps; after each the scale, whether the norm was finite, and a digest of all weights."""
    torch.manual_seed(4)
    model = Spiky()
    replica = strategy.replicate(model, Optimization(clip_norm=1.0), 0.01, precision)
    data = torch.randn(STEPS, 16, 9, generator=torch.Generator().manual_seed(1))
    told: dict[str, Any] = {"scales": [], "finite": [], "digests": [], "losses": []}
    for step in range(STEPS):
        part = data[step].chunk(strategy.group_size)[strategy.group_rank]
        wanted = torch.zeros(6)
        if step == OVERFLOW and strategy.place.rank == overflow_rank:
            wanted[0] = 3e38  # one element alone, which lies in one rank's shard
        with replica.micro_batch(last=True):
            with precision.forward():
                loss = (replica.module(part[:, :8], wanted) - part[:, 8:]).square().mean()
            replica.backward(loss, last=True)
        told["finite"].append(bool(torch.isfinite(replica.update())))
        scale = precision.loss_scale()
        told["scales"].append(None if scale is None else float(scale))
        told["digests"].append(digest(model))
        told["losses"].append(float(loss.detach()))
    return told


def digest(model: nn.Module) -> str:
    """Of all weights, whole."""
    found = hashlib.sha256()
    for value in model.state_dict().values():
        whole = value.full_tensor() if isinstance(value, DTensor) else value
        found.update(whole.detach().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def fp16() -> Precision:
    """fp16 whose scale does not overflow by itself here, and soon doubles."""
    precision = Precision("fp16", torch.device("cpu"))
    precision.scaler = torch.amp.GradScaler("cpu", init_scale=SCALE, growth_interval=GROWTH)
    return precision


def main(rank: int, world: int, folder: Path) -> None:
    """Every mode in turn, since starting a process takes longest."""
    outcomes = {}
    for name, mode in MODES.items():
        rendezvous = (folder / f"rendezvous-{mode}").as_uri()
        place = RankPlace(rank, world, torch.device("cpu"), "gloo", rendezvous, timeout_s=60.0)
        config = RunConfig(mode=mode, zero_engine="torch", gradient_exchange="plain")
        strategy = make_strategy(mode, place, config, Batch.of(1, world, 1))
        strategy.setup()
        outcomes[name] = train(strategy, fp16(), overflow_rank=1)
        strategy.close()
    sys.stdout.write(json.dumps(outcomes) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
