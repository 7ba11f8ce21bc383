"""DDP with gradients through shared memory, beside plain DDP: real processes, real training."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from core.config.run_config import EXCHANGES
from core.errors import ConfigError
from core.host.failures import RankFailure
from core.protocol.messages import RankFailed
from tests.helpers.rank_processes import run_ranks
from tests.helpers.wine import UNDER_WINE
from tests.training.rank_program import CPU, BareRank
from tests.training.workers.all_reduce.observed import digest, error_of
from workers.all_reduce import GradientAllReduce, choose_all_reduce
from workers.all_reduce.choice import WANTED
from workers.all_reduce.shared_all_reduce import SharedAllReduce
from workers.strategies.base import RankPlace
from workers.strategies.process_group import make_process_group

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
STEPS = 5
HOLD_S = 60.0
VARIANTS: dict[str, dict[str, Any]] = {
    "views": {},
    "copies": {"gradient_as_bucket_view": False},
    "static": {"static_graph": True},
    "one": {"bucket_cap_mb": 50},
}
if UNDER_WINE:  # a step over gloo takes seconds there
    VARIANTS = {"views": VARIANTS["views"]}


def make_model() -> nn.Module:
    torch.manual_seed(1)
    layers = [layer for _ in range(6) for layer in (nn.Linear(200, 200), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(200, 3))


def trained(place: RankPlace, exchange: GradientAllReduce | None, steps: int = STEPS, **options: Any) -> list[str]:
    """Digests of the weights after a few steps in several small buckets, accumulation included."""
    model = make_model()
    given = {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.2, **options}
    ddp = DistributedDataParallel(model, **given)
    if exchange is not None:
        exchange.register(ddp)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = torch.randn(steps, 2, 8, 200, generator=torch.Generator().manual_seed(place.rank))
    for step in range(steps):
        # A static graph has to be seen whole in its first step.
        with ddp.no_sync() if step or "static_graph" not in options else nullcontext():
            torch.autograd.backward(ddp(data[step, 0]).square().mean())
        torch.autograd.backward(ddp(data[step, 1]).square().mean())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return [digest(parameter.detach()) for parameter in model.parameters()]


def train(group: dist.ProcessGroup, place: RankPlace) -> dict[str, Any]:
    """Plain DDP and DDP through shared memory from the same start."""
    exchange = choose_all_reduce(group, place, "shared")
    plain = {name: trained(place, None, **options) for name, options in VARIANTS.items()}
    ours = {name: trained(place, exchange, **options) for name, options in VARIANTS.items()}
    assert exchange._shared is not None
    in_place = exchange._shared.in_place.shared
    wait, name, words = exchange.sync_wait_s, exchange.name, exchange.summary
    exchange.close()
    exchange.close()
    return {
        "name": name, "words": words, "waited": wait is not None and 0 <= wait < HOLD_S,
        "plain": plain, "ours": ours, "in_place": in_place,
    }  # fmt: skip


def surprises(group: dist.ProcessGroup, place: RankPlace) -> dict[str, Any]:
    """Shared memory that sums wrongly, or not at all, in one of the ranks: all go over gloo."""
    right = SharedAllReduce.sum

    def wrong(self: SharedAllReduce, tensor: Tensor, factor: float = 1.0) -> None:
        right(self, tensor, factor)
        tensor[-1] += 1

    def raising(self: SharedAllReduce, tensor: Tensor, factor: float = 1.0) -> None:
        raise OSError(f"no {tensor.dtype} today, {factor} times {self._rank}")

    found = {}
    for name, fault in (("wrong", wrong), ("raising", raising)):
        if place.rank == 1:
            SharedAllReduce.sum = fault  # type: ignore[method-assign]
        exchange = choose_all_reduce(group, place, "shared")
        SharedAllReduce.sum = right  # type: ignore[method-assign]
        found[name] = [exchange.name, exchange.summary, exchange.fallback]
        exchange.close()
    return found


def die_in_training(group: dist.ProcessGroup, place: RankPlace) -> dict[str, Any]:
    """The last rank dies between two steps; the others' backward pass says so."""
    exchange = choose_all_reduce(group, place, "shared")
    model = make_model()
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=0.2)
    exchange.register(ddp)
    for _ in range(3):  # DDP talks over gloo once more before its second step
        torch.autograd.backward(ddp(torch.randn(4, 200)).sum())
    if place.rank == place.world_size - 1:
        os._exit(9)
    found = error_of(lambda: torch.autograd.backward(ddp(torch.randn(4, 200)).sum()))
    exchange.close()
    return found


SCENARIOS: dict[str, Callable[[dist.ProcessGroup, RankPlace], dict[str, Any]]] = {
    "train": train, "surprises": surprises, "die_in_training": die_in_training,
}  # fmt: skip


def in_turn(rank: BareRank, *names: str) -> dict[str, Any]:
    """One scenario after the other, all of them in one process group."""
    place = rank.place("all")
    group = make_process_group(place)
    return {name: SCENARIOS[name](group, place) for name in names}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_ranks(in_turn, 2, tmp_path_factory.mktemp("two"), "train", "surprises")


def test_two_ranks_train_bit_for_bit_as_plain_ddp(two: list[dict[str, Any]]) -> None:
    first, second = (rank["train"] for rank in two)
    assert first["name"] == "shared" and first["words"].startswith("Gradients go through shared memory.")
    assert first["ours"] == second["ours"] == first["plain"] == second["plain"]
    assert set(first["ours"]) == set(VARIANTS)
    assert first["in_place"] == second["in_place"] > 1  # buckets, from their third step on
    assert first["waited"] and second["waited"]


@pytest.mark.windows
def test_training_on_windows_and_a_rank_that_dies(tmp_path: Path) -> None:
    """One start of ranks: the same training as above, then a death that the backward pass names."""
    (left,) = run_ranks(in_turn, 2, tmp_path, "train", "die_in_training", dead=[9])
    assert left["train"]["ours"] == left["train"]["plain"]
    died = left["die_in_training"]
    assert died["type"] == "PeerLostError" and "rank 1 (process" in died["cause"]
    assert died["s"] < 5.0
    assert RankFailure(0, 1.0, report=RankFailed(**died["report"])).is_secondary


def test_a_surprise_at_the_self_test_means_gloo_for_all(two: list[dict[str, Any]]) -> None:
    for rank, found in enumerate(two):
        for name, words in (("wrong", "its sums differ from gloo's"), ("raising", "OSError: no torch.float32 today")):
            way, said, fallback = found["surprises"][name]
            assert (
                way == "gloo" and said == f"Gradients go over gloo, because shared memory cannot be used: {fallback}."
            )
            assert rank == 0 or fallback.startswith(words)


def test_ways_have_the_names_of_the_setting() -> None:
    assert set(WANTED) == set(EXCHANGES)


def test_an_unknown_way_is_refused_and_nccl_left_alone() -> None:
    place = RankPlace(0, 2, CPU, "nccl")
    no_group = torch.distributed.ProcessGroup  # not reached: nothing is agreed on
    with pytest.raises(ConfigError, match="gradient_exchange is 'pigeons'"):
        choose_all_reduce(no_group, place, "pigeons")
    assert choose_all_reduce(no_group, place, "auto").name == "nccl"
    wanted = choose_all_reduce(no_group, place, "shared")
    assert wanted.name == "nccl" and wanted.fallback == "the process group is NCCL's"
    assert not wanted.through_shared_memory and wanted.sync_wait_s is None
