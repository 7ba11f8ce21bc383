"""One of several real processes that try settings of `RunConfig` under DDP and DeepSpeed; prints one JSON line.

Run by `test_knobs`: `python -m tests.training.workers.knob_rank WHAT WAY RANK WORLD FOLDER`.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from core.config import RunConfig
from core.config.batch import resolve_batch
from workers.host_link.failures import explain
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import RankPlace, Replica, Strategy, make_strategy

TIMEOUT_S: Final = 2.0
SILENT_S: Final = 20.0
CPU: Final = torch.device("cpu")


class TwoHeads(nn.Module):
    """Its loss depends on one head only, in odd steps on the other one, and on a buffer that each rank fills itself."""

    def __init__(self, *, both: bool) -> None:
        super().__init__()
        self.body, self.norm = nn.Linear(40, 300), nn.BatchNorm1d(300)
        self.heads = nn.ModuleList([nn.Linear(300, 5), nn.Linear(300, 5)])
        self.never = nn.Linear(3, 3)
        self.both, self.step = both, 0

    def forward(self, features: Tensor) -> Tensor:
        hidden = self.norm(self.body(features))
        chosen = self.heads[self.step % 2](hidden)
        return chosen if not self.both else chosen + self.never(features[:, :3]).sum() + self.heads[1](hidden).sum()


def build(place: tuple[int, int, Path], *, timeout_s: float, both: bool, **settings: Any) -> tuple[Strategy, Replica]:
    rank, world, folder = place
    config = RunConfig(**{"mode": "ddp", "collective_timeout_s": timeout_s, **settings})
    url = (folder / "rendezvous").as_uri()
    where = RankPlace(rank, world, CPU, "gloo", url, config.collective_timeout_s)
    strategy = make_strategy(config.mode, where, config, resolve_batch(config, world))
    strategy.setup()
    seeding.seed_everything(3)
    model = TwoHeads(both=both)
    return strategy, strategy.replicate(model, Optimization(clip_norm=1.0), 0.01, Precision("fp32", CPU))


def silent(way: str, place: tuple[int, int, Path]) -> dict[str, Any]:
    """Rank 1 says nothing for a long time; how long the other one waits, and what it then says."""
    # Buffers would be broadcast over gloo, before gradients travel at all.
    settings: dict[str, Any] = {"gradient_exchange": way, "broadcast_buffers": False}
    if way == "deepspeed":
        settings = {"mode": "zero", "zero_stage": 1, "zero_engine": "deepspeed"}
    _, replica = build(place, timeout_s=TIMEOUT_S, both=True, **settings)
    if place[0] == 1:
        time.sleep(SILENT_S)
        return {}
    began = time.monotonic()
    try:
        with replica.micro_batch(last=True):
            replica.backward(replica.module(torch.ones(4, 40)).square().mean(), last=True)
        replica.update()
    except Exception as error:
        found = explain(error, "cpu")
        return {"waited_s": time.monotonic() - began, "title": found.title, "cause": found.cause}
    return {"waited_s": time.monotonic() - began, "title": "it did not fail"}


def unused(way: str, place: tuple[int, int, Path]) -> dict[str, Any]:
    """Trains a model that leaves some parameters out; WAY is the gradient exchange and, after a dash, the setting."""
    exchange, _, setting = way.partition("-")
    strategy, replica = build(place, timeout_s=60.0, both=False, gradient_exchange=exchange, **_settings(setting))
    losses = []
    model: Any = replica.model
    data = torch.randn(6, 2, 8, 40, generator=torch.Generator().manual_seed(place[0]))
    try:
        replica.warm_up(replica.module(data[0, 0]).square().mean())
        for step in range(6):
            model.step = step if setting != "static" else 0
            for micro in range(2):
                with replica.micro_batch(last=micro == 1):
                    loss = replica.module(data[step, micro]).square().mean()
                    replica.backward(loss / 2, last=micro == 1)
            replica.update()
            losses.append(float(loss.detach()))
    except Exception as error:
        found = explain(error, "cpu")
        return {"title": found.title, "cause": found.cause, "next_step": found.next_step}
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
    buffer = model.norm.running_mean.sum().item()
    strategy.close()
    return {"losses": losses, "weights": digest, "unused": model.never.weight.grad is None, "buffer": buffer}


def _settings(setting: str) -> dict[str, Any]:
    return {
        "": {},
        "find": {"find_unused_parameters": True},
        "static": {"find_unused_parameters": True, "static_graph": True},
        "own": {"find_unused_parameters": True, "broadcast_buffers": False},
    }[setting]


def main() -> None:
    """See the module."""
    what, way, rank, world, folder = sys.argv[1:]
    torch.set_num_threads(1)
    place = (int(rank), int(world), Path(folder))
    print(json.dumps({"silent": silent, "unused": unused}[what](way, place)), flush=True)


if __name__ == "__main__":
    main()
