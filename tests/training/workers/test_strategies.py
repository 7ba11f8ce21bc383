"""Strategies on two real processes over gloo; what they must agree on with one process alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("torch", reason="trains for real")

import torch

from core.config import RunConfig
from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import CPU, BareRank
from tests.training.workers.sharded_training import is_sharded
from tests.training.workers.tiny_net import STEPS, make_model, train_step
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import RankPlace, SingleStrategy
from workers.strategies.ddp import DdpStrategy
from workers.strategies.replica import optimizer_state
from workers.training.checkpoint import load_part, take_part, write_part

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


RULE = Optimization(weight_decay=0.1, clip_norm=1.0)


def trained(rank: BareRank, mode: str) -> dict[str, Any]:
    """Trains a few steps, commits after half of them, and says what came of it."""
    strategy = rank.set_up(mode)
    model, data = make_model(rank.world)
    replica = strategy.replicate(model, RULE, 0.01, Precision("fp32", CPU))
    flags = []
    for step in range(STEPS):
        if step == STEPS // 2:
            write_part(rank.folder, take_part(strategy, replica, step, {"step": step}))
        train_step(strategy, replica, data[step])
        flags.append(strategy.agree(step if rank.rank == rank.world - 1 else 0))
    flags.append(strategy.settle())
    weights = [whole(p).clone() for p in model.parameters()]
    total = strategy.total([float(rank.rank + 1), 2.0])
    strategy.total([0.0])  # every rank's part lies on disk
    load_part(rank.folder, strategy, replica)
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
    return tensor.full_tensor() if is_sharded(tensor) else tensor


@pytest.fixture(scope="module")
def alone() -> float:
    """The sum of all weights after training in one process on the whole batches of two ranks."""
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    model, data = make_model(2)
    replica = strategy.replicate(model, RULE, 0.01, Precision("fp32", CPU))
    for step in range(STEPS):
        train_step(strategy, replica, data[step])
    return float(sum(p.detach().double().sum() for p in model.parameters()))


# ZeRO passes under Wine too, but its imports alone take minutes there.
@pytest.mark.parametrize("mode", [pytest.param("ddp", marks=pytest.mark.windows), "zero"])
def test_two_ranks_in_step(mode: str, tmp_path: Path, alone: float) -> None:
    first, second = run_ranks(trained, 2, tmp_path, mode)
    assert first["sum"] == second["sum"] == pytest.approx(alone, rel=1e-5)
    assert first["resumed_bit_equal"] and second["resumed_bit_equal"]
    # rank 1 raised flag `step` at each boundary; everybody reads it one boundary later
    assert first["flags"] == second["flags"] == [0, 0, 1, 2, 3, 4, 5]
    assert first["total"] == second["total"] == [3.0, 4.0]
    assert first["waited"] and second["waited"]
    assert first["exchange"] == second["exchange"] and first["exchange"] in ("shared", "gloo")
    names = {path.name for path in tmp_path.glob("*.safetensors")}
    if mode == "zero":
        shares = [first["held"], second["held"]]
        assert sum(shares) == 3 * first["parameters"] and min(shares) > 0
        assert {"optimizer_shard0.safetensors", "optimizer_shard1.safetensors"} <= names
    else:
        assert first["held"] == second["held"] == 3 * first["parameters"]
        assert names == {"weights.safetensors", "optimizer.safetensors", "rank0.safetensors", "rank1.safetensors"}
    for rank in (first, second):
        assert set(rank["listening"]) <= {"127.0.0.1"}, "gloo may listen on loopback only"


@pytest.mark.windows
def test_three_ranks_go_on_bit_by_bit_too(tmp_path: Path) -> None:
    """With three, the order in which gloo adds depends on the buckets: they must not differ after a resume."""
    ranks = run_ranks(trained, 3, tmp_path, "ddp")
    assert all(rank["resumed_bit_equal"] for rank in ranks)
    assert len({rank["sum"] for rank in ranks}) == 1


def test_independent_ranks_exchange_nothing(tmp_path: Path) -> None:
    first, second = run_ranks(trained, 2, tmp_path, "independent")
    assert first["resumed_bit_equal"] and second["resumed_bit_equal"]
    assert first["listening"] == second["listening"] == []
    assert first["flags"] == [0] * 6 + [0] and second["flags"] == [0, 1, 2, 3, 4, 5, 0]
    assert first["total"] == [1.0, 2.0] and second["total"] == [2.0, 2.0]


def test_a_resumed_run_exchanges_gradients_as_before() -> None:
    """With three ranks shared memory and gloo add in different orders."""

    def recalled(counters: dict[str, Any], wanted: str = "auto") -> str:
        strategy = DdpStrategy(RankPlace(0, 3, CPU), RunConfig(gradient_exchange=wanted))
        strategy.recall(counters)
        return strategy.wanted_all_reduce

    assert recalled({"mode": "ddp", "world_size": 3, "exchange": "gloo"}) == "plain"
    assert recalled({"mode": "ddp", "world_size": 3, "exchange": "shared"}) == "shared"
    assert recalled({"mode": "ddp", "world_size": 2, "exchange": "gloo"}) == "auto"
    assert recalled({"mode": "ddp", "world_size": 3}, "bf16") == "auto"  # a choice of an earlier version
