"""DDP's arguments and the collective timeout, on real processes: every way that gradients travel heeds them."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
from torch import Tensor, nn

from tests.helpers.deepspeed_here import needs_deepspeed
from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import CPU, BareRank
from workers.host_link.failures import explain
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import Replica, Strategy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


TIMEOUT_S: Final = 2.0
SILENT_S: Final = 20.0
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "": {},
    "find": {"find_unused_parameters": True},
    "copied": {"find_unused_parameters": True, "gradient_as_bucket_view": False},
    "own": {"find_unused_parameters": True, "broadcast_buffers": False},
}


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


def replicated(strategy: Strategy, *, both: bool) -> Replica:
    seeding.seed_everything(3)
    return strategy.replicate(TwoHeads(both=both), Optimization(clip_norm=1.0), 0.01, Precision("fp32", CPU))


def silent(rank: BareRank, way: str) -> dict[str, Any]:
    """Rank 1 sends nothing until the other one gives up; how long that waits, and what it then reports."""
    # Buffers would be broadcast over gloo, before gradients travel at all.
    settings: dict[str, Any] = {"gradient_exchange": way, "broadcast_buffers": False}
    if way == "deepspeed":
        settings = {"zero_engine": "deepspeed"}
    mode = "zero1" if way == "deepspeed" else "ddp"
    replica = replicated(rank.set_up(mode, collective_timeout_s=TIMEOUT_S, **settings), both=True)
    began, given_up = time.monotonic(), rank.folder / "given up"
    if rank.rank == 1:
        while not given_up.exists() and time.monotonic() < began + SILENT_S:
            time.sleep(0.05)
        return {}
    try:
        with replica.micro_batch(last=True):
            replica.backward(replica.module(torch.ones(4, 40)).square().mean(), last=True)
        replica.update()
    except Exception as error:
        found = explain(error, "cpu")
        return {"waited_s": time.monotonic() - began, "title": found.title, "cause": found.cause}
    finally:
        given_up.touch()
    return {"waited_s": time.monotonic() - began, "title": "it did not fail"}


def unused(rank: BareRank, exchange: str, setting: str) -> dict[str, Any]:
    strategy = rank.set_up("ddp", gradient_exchange=exchange, **SETTINGS[setting])
    replica = replicated(strategy, both=False)
    losses = []
    model: Any = replica.model
    data = torch.randn(6, 2, 8, 40, generator=torch.Generator().manual_seed(rank.rank))
    try:
        replica.warm_up(replica.module(data[0, 0]).square().mean())
        for step in range(6):
            model.step = step
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


@pytest.mark.parametrize("way", ["plain", "shared", pytest.param("deepspeed", marks=needs_deepspeed)])
def test_a_rank_that_says_nothing_is_waited_for_as_long_as_was_asked(tmp_path: Path, way: str) -> None:
    waiting, _ = run_ranks(
        silent, 2, tmp_path, way
    )  # the other rank is silent for up to 20 s, and 300 s is the default
    assert 1.5 < waiting["waited_s"] < 15.0
    assert waiting["title"] == "Another device does not answer"


@pytest.mark.parametrize("exchange", ["plain", "shared", "fp16"])
def test_parameters_without_a_gradient_train_when_they_are_looked_for(tmp_path: Path, exchange: str) -> None:
    one, other = run_ranks(unused, 2, tmp_path, exchange, "find")
    assert one["weights"] == other["weights"] and one["unused"] and len(one["losses"]) == 6


@pytest.mark.parametrize("exchange", ["plain", "shared"])
def test_without_looking_for_them_it_is_said_which_setting_helps(tmp_path: Path, exchange: str) -> None:
    for rank in run_ranks(unused, 2, tmp_path, exchange, ""):
        assert rank["title"] == "Some parameters got no gradient"
        assert "--find-unused-parameters" in rank["next_step"]


def test_both_ways_of_exchange_give_the_same_weights(tmp_path: Path) -> None:
    weights = set()
    for exchange in ("plain", "shared"):
        folder = tmp_path / exchange
        folder.mkdir()
        weights |= {rank["weights"] for rank in run_ranks(unused, 2, folder, exchange, "find")}
    assert len(weights) == 1


def test_buffers_are_copied_from_the_first_rank_unless_told_otherwise(tmp_path: Path) -> None:
    """In its last forward pass each rank adds its own batch to the running mean, so even copies differ a little."""
    buffers = {}
    for setting in ("find", "own"):
        folder = tmp_path / setting
        folder.mkdir()
        buffers[setting] = [rank["buffer"] for rank in run_ranks(unused, 2, folder, "shared", setting)]
    assert buffers["find"][0] == buffers["own"][0], "the first rank's are its own either way"
    assert buffers["find"][1] != buffers["own"][1]
