"""Two real processes with unequal shares train as one process alone; a measured run finds its shares, keeps them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.checkpoints.store import CheckpointStore
from core.ledger.ledger import Ledger
from core.run_folder.store import RunStore
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import host, lines, make_run, write_text
from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import CPU, BareRank
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import RankPlace, Replica, SingleStrategy, Strategy
from workers.training.batches import ChunkPlan, GroupBatches

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
RECIPE = ROOT / "tests" / "helpers" / "recipes" / "unequal"


MICRO, STEPS = 4, 5
PLAN = ChunkPlan(samples=14 * MICRO * STEPS - 17, samples_per_block=100, chunk_size=20, seed=3)


def data() -> Tensor:
    return torch.randn(PLAN.samples, 8, generator=torch.Generator().manual_seed(2))


def make_model() -> nn.Module:
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
    return [float(value) for tensor in tensors for value in tensor.detach().flatten()]


def both_modes(rank: BareRank, *shares: int) -> dict[str, Any]:
    """One mode after the other, since starting a process takes longest."""
    found = {}
    for way in ("ddp", "zero1"):
        with rank.strategy(way) as strategy:
            found[strategy.name] = train(strategy, shares)
    return found


def difference(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def test_five_batches_against_nine_give_the_single_process_gradient(tmp_path: Path) -> None:
    alone = train(SingleStrategy(RankPlace(0, 1, CPU)), None)
    assert alone["micro_batches"][0] == 14
    both = run_ranks(both_modes, 2, tmp_path, 5 * MICRO, 9 * MICRO)
    for mode in both[0]:
        first, second = (rank[mode] for rank in both)
        assert (first["micro_batches"][0], second["micro_batches"][0]) == (5, 9), mode
        assert first["gradient"] == second["gradient"]
        assert difference(first["gradient"], alone["gradient"]) <= 1e-6
        assert first["weights"] == second["weights"]
        # the epoch's last batch is short, and shared out in the same proportion
        assert len(first["norms"]) == len(alone["norms"]) == 5
        assert first["norms"] == pytest.approx(alone["norms"], rel=1e-4)
        assert difference(first["weights"], alone["weights"]) <= 1e-5


def measured_run(folder: Path, text: Path) -> RunStore:
    """Rank 1 takes sixteen times as long, so that no other program on the machine can hide it."""
    return make_run(
        folder,
        text,
        "ddp",
        2,
        recipe=str(RECIPE),
        balance="measured",
        steps=14,
        batch_size=8,
        checkpoint_every_steps=6,
        options={"slow_rank": 1, "times": 16, "n_embd": 32},
    )


def test_measured_shares_are_told_saved_and_kept_by_a_resumed_run(tmp_path: Path) -> None:
    """With all checkpoints after step 6 gone the run resumes from there: the same steps, bit by bit."""
    store = measured_run(tmp_path / "run", write_text(tmp_path / "text.txt"))
    assert host(store) == 0
    told = lines(store, "balance")
    assert [line["reason"] for line in told] == ["start"]
    shares = told[0]["shares"]
    assert sum(shares) == 16 and shares[0] > shares[1] >= 1
    assert f"{shares[0]} + {shares[1]} of 16" in told[0]["text"]
    found = {checkpoint.step: checkpoint.folder for checkpoint in CheckpointStore(store.checkpoints).list()}
    assert 6 in found and 14 in found
    for step, folder in found.items():
        if step > 6:
            shutil.rmtree(folder)
    assert host(store) == 0
    assert lines(store, "balance") == told, "a resumed run keeps the shares it was saved with"
    steps = {(line["attempt"], line["rank"], line["step"]): line for line in lines(store, "step")}
    for rank in (0, 1):
        assert [steps[2, rank, step]["loss"] for step in range(7, 15)] == [
            steps[1, rank, step]["loss"] for step in range(7, 15)
        ]
        assert (2, rank, 6) not in steps
        line = steps[2, rank, 14]
        assert round(line["samples_per_s"] * line["step_time_s"]) == shares[rank]
