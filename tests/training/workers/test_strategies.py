"""Strategies on two real processes over gloo; what they must agree on with one process alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.rank_processes import run_rank_processes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def run_ranks(mode: str, world: int, folder: Path) -> list[dict[str, Any]]:
    """Each rank's JSON line."""
    return run_rank_processes("tests.training.workers.gloo_rank", world, folder, mode)


@pytest.fixture(scope="module")
def alone() -> float:
    """The sum of all weights after training in one process on the whole batches of two ranks."""
    torch = pytest.importorskip("torch", reason="trains for real")
    from tests.training.workers.gloo_rank import STEPS, make_model, train_step
    from workers.optim.optimizer import Optimization
    from workers.optim.precision import Precision
    from workers.strategies import RankPlace, SingleStrategy

    strategy = SingleStrategy(RankPlace(0, 1, torch.device("cpu")))
    model, data = make_model(2)
    rule = Optimization(weight_decay=0.1, clip_norm=1.0)
    replica = strategy.replicate(model, rule, 0.01, Precision("fp32", torch.device("cpu")))
    for step in range(STEPS):
        train_step(strategy, replica, data[step])
    return float(sum(p.detach().double().sum() for p in model.parameters()))


# ZeRO passes under Wine too, but its imports alone take minutes there.
@pytest.mark.parametrize("mode", [pytest.param("ddp", marks=pytest.mark.windows), "zero"])
def test_two_ranks_in_step(mode: str, tmp_path: Path, alone: float) -> None:
    first, second = run_ranks(mode, 2, tmp_path)
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


def test_three_ranks_go_on_bit_by_bit_too(tmp_path: Path) -> None:
    """With three, the order in which gloo adds depends on the buckets: they must not differ after a resume."""
    ranks = run_ranks("ddp", 3, tmp_path)
    assert all(rank["resumed_bit_equal"] for rank in ranks)
    assert len({rank["sum"] for rank in ranks}) == 1


def test_independent_ranks_exchange_nothing(tmp_path: Path) -> None:
    first, second = run_ranks("independent", 2, tmp_path)
    assert first["resumed_bit_equal"] and second["resumed_bit_equal"]
    assert first["listening"] == second["listening"] == []
    assert first["flags"] == [0] * 6 + [0] and second["flags"] == [0, 1, 2, 3, 4, 5, 0]
    assert first["total"] == [1.0, 2.0] and second["total"] == [2.0, 2.0]


def test_a_resumed_run_exchanges_gradients_as_before() -> None:
    """With three ranks shared memory and gloo add in different orders, and a self-test may end either way."""
    torch = pytest.importorskip("torch", reason="trains for real")
    from workers.strategies import RankPlace
    from workers.strategies.ddp import DdpStrategy

    def recalled(counters: dict[str, Any], wanted: str = "auto") -> str:
        strategy = DdpStrategy(RankPlace(0, 3, torch.device("cpu")), wanted)
        strategy.recall(counters)
        return strategy.wanted_all_reduce

    assert recalled({"mode": "ddp", "world_size": 3, "exchange": "gloo"}) == "plain"
    assert recalled({"mode": "ddp", "world_size": 3, "exchange": "shared"}) == "shared"
    assert recalled({"mode": "ddp", "world_size": 2, "exchange": "gloo"}) == "auto"
    assert recalled({"mode": "ddp", "world_size": 3, "exchange": "gloo"}, "bf16") == "bf16"
