"""Rounds of independent ranks on real processes: against DDP, against DiLoCo's formula, and when one stops or dies."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
from torch import Tensor, nn

from core.config.sync import AVERAGE, DILOCO, Synchronisation
from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import CPU, BareRank
from tests.training.workers.tiny_net import STEPS, make_model, train_step
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import Replica
from workers.strategies.local_sgd import LocalSgdReplica, LocalSgdStrategy
from workers.training.independent.local_sgd import LocalSgd

pytestmark = [pytest.mark.slow, pytest.mark.windows, pytest.mark.timeout(240)]
WORLD = 3
RULE = Optimization(kind=torch.optim.SGD)
OUTER = Synchronisation(3, DILOCO, 0.7, 0.9)


def all_ways(rank: BareRank) -> dict[str, Any]:
    """Trains with DDP, then in rounds in several ways; returns what came of each."""
    in_step = with_ddp(rank)
    strategy = LocalSgdStrategy(rank.place("rounds"), Synchronisation(1, AVERAGE, 1.0, 0.0))
    strategy.setup()
    averaged = every_step(strategy)
    strategy.rule = OUTER
    outcome = {
        "apart_from_ddp": float((in_step - averaged).abs().max()),
        **in_rounds(strategy),
        **stopped(strategy),
        **joined(strategy),
    }
    outcome["left"] = left_by_the_others(strategy)
    return outcome


def flat(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def synchronise(
    local_sgd: LocalSgd,
    step: int,
    samples: int,
    *,
    total: int = STEPS,
    stop: bool = False,
    newest: int = 0,
    **calls: Any,
) -> bool:
    nothing: dict[str, Any] = {"meanwhile": lambda: None, "join": lambda: None, **calls}
    return local_sgd.synchronise(step, samples, active=step < total, stop=stop, newest=lambda: newest, **nothing)


def begin(strategy: LocalSgdStrategy) -> tuple[LocalSgd, LocalSgdReplica, Tensor]:
    """A fresh model at the first round, and data for all ranks."""
    model, data = make_model(strategy.place.world_size)
    replica = strategy.replicate(model, RULE, 0.05, Precision("fp32", CPU))
    local_sgd = LocalSgd(strategy, replica)
    local_sgd.begin(None, 0, 0)
    return local_sgd, replica, data


def own_step(strategy: LocalSgdStrategy, replica: Replica, data: Tensor) -> None:
    """A step on this rank's share of a global batch."""
    share = data.chunk(strategy.place.world_size)[strategy.place.rank]
    replica.backward(replica.module(share).square().mean(), last=True)
    replica.update()


def with_ddp(rank: BareRank) -> Tensor:
    model, data = make_model(rank.world)
    with rank.strategy("ddp", gradient_exchange="plain") as strategy:
        replica = strategy.replicate(model, RULE, 0.05, Precision("fp32", CPU))
        for step in range(STEPS):
            train_step(strategy, replica, data[step])
    return flat(model)


def every_step(strategy: LocalSgdStrategy) -> Tensor:
    local_sgd, replica, data = begin(strategy)
    for step in range(1, STEPS + 1):
        own_step(strategy, replica, data[step - 1])
        assert local_sgd.due(step) and synchronise(local_sgd, step, step)
    assert local_sgd.over and local_sgd.round == STEPS
    return flat(replica.model)


def in_rounds(strategy: LocalSgdStrategy) -> dict[str, Any]:
    """Two rounds of the outer optimizer and the last one; rank r counts r + 1 times. Before each, state is saved and
    taken up again.
    """
    local_sgd, replica, data = begin(strategy)
    apart, together = [], [flat(replica.model).tolist()]
    for step in range(1, STEPS + 2):
        own_step(strategy, replica, data[(step - 1) % STEPS])
        assert local_sgd.due(step) == (step % OUTER.every == 0)
        if local_sgd.due(step) or step > STEPS:
            apart.append(flat(replica.model).tolist())
            kept = {name: tensor.clone() for name, tensor in replica.outer.tensors().items()}
            replica.outer.load(kept)
            assert synchronise(local_sgd, step, step * (strategy.place.rank + 1), total=STEPS + 1)
            together.append(flat(replica.model).tolist())
    figures = local_sgd.take_costs()
    return {"apart": apart, "together": together, "sent": figures["sync_bytes"], "over": local_sgd.over}


def stopped(strategy: LocalSgdStrategy) -> dict[str, Any]:
    """Rank 1 is told to stop in the middle of a round, the others reach its end."""
    local_sgd, replica, data = begin(strategy)
    own_step(strategy, replica, data[0])
    before = flat(replica.model)
    synchronised = synchronise(local_sgd, OUTER.every, 1, stop=strategy.place.rank == 1)
    if strategy.place.rank == 1:
        strategy.count(lambda: None)  # at its end a run's ranks leave together; here they continue with the next test
    return {
        "synchronised": synchronised,
        "untouched": torch.equal(before, flat(replica.model)),
        "round_after_stop": local_sgd.round,
    }


def joined(strategy: LocalSgdStrategy) -> dict[str, Any]:
    """Rank 0 has a part in checkpoint 5, of which the others do not know."""
    local_sgd, replica, data = begin(strategy)
    own_step(strategy, replica, data[0])
    before = flat(replica.model)
    parts: list[bool] = []
    newest = 5 if strategy.place.rank == 0 else 4
    join = lambda: parts.append(torch.equal(before, flat(replica.model)))  # noqa: E731
    assert synchronise(local_sgd, OUTER.every, 1, newest=newest, join=join)
    return {"parts": parts}


def left_by_the_others(strategy: LocalSgdStrategy) -> str:
    """The error that rank 0 gets when no other rank joins the round."""
    local_sgd, _, _ = begin(strategy)
    if strategy.place.rank != 0 or sys.platform == "win32":  # there gloo does not notice; a run's host does
        return ""
    try:
        synchronise(local_sgd, OUTER.every, 1)
    except RuntimeError as error:
        return str(error)
    return "nothing"


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_ranks(all_ways, WORLD, tmp_path_factory.mktemp("rounds"))


def test_averaging_at_every_step_is_ddp(ranks: list[dict[str, Any]]) -> None:
    assert all(rank["apart_from_ddp"] < 1e-6 for rank in ranks)


def test_the_outer_step_is_nesterov_sgd_on_the_mean_difference(ranks: list[dict[str, Any]]) -> None:
    assert all(rank["together"] == ranks[0]["together"] for rank in ranks), "all ranks hold the same bits"
    shared = torch.nn.Parameter(torch.tensor(ranks[0]["together"][0]))
    outer = torch.optim.SGD([shared], lr=0.7, momentum=0.9, nesterov=True)
    shares = [(number + 1) / sum(range(1, WORLD + 1)) for number in range(WORLD)]  # by samples: 1 : 2 : 3
    for number in range(3):
        mean = sum(share * torch.tensor(rank["apart"][number]) for share, rank in zip(shares, ranks, strict=True))
        shared.grad = shared.detach() - mean
        outer.step()
        expected = shared.detach() if number < 2 else mean  # the last round takes the mean itself
        torch.testing.assert_close(torch.tensor(ranks[0]["together"][number + 1]), expected)
    numbers = len(ranks[0]["together"][0])
    assert [rank["sent"] for rank in ranks] == [3 * (2 * 2 * 4 * numbers // 3)] * WORLD
    assert all(rank["over"] for rank in ranks)


def test_one_that_stops_stops_all_before_the_weights_are_touched(ranks: list[dict[str, Any]]) -> None:
    assert [rank["synchronised"] for rank in ranks] == [False] * WORLD
    assert all(rank["untouched"] and rank["round_after_stop"] == 0 for rank in ranks)


def test_a_checkpoint_of_this_round_gets_its_parts_before_the_weights_are_touched(ranks: list[dict[str, Any]]) -> None:
    assert [rank["parts"] for rank in ranks] == [[], [True], [True]]


@pytest.mark.skipif(sys.platform == "win32", reason="gloo there does not notice; the host of a run does, and ends it")
def test_a_rank_whose_others_are_gone_is_told(ranks: list[dict[str, Any]]) -> None:
    words = ranks[0]["left"]
    assert words not in ("", "nothing"), words  # how it is put is the system's business
