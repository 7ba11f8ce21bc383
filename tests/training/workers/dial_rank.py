"""One of several real processes that meet in rounds; prints one JSON line. Run by `test_dial`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core.config import RunConfig
from core.config.batch import Batch
from core.config.sync import AVERAGE, DILOCO, Synchronisation
from tests.training.workers.gloo_rank import STEPS, make_model, train_step
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.strategies import RankPlace, Replica, make_strategy
from workers.strategies.local_sgd import LocalSgdReplica, LocalSgdStrategy
from workers.training.independent.local_sgd import LocalSgd

RULE = Optimization(kind=torch.optim.SGD)
OUTER = Synchronisation(3, DILOCO, 0.7, 0.9)


def run(rank: int, world: int, folder: Path) -> dict[str, Any]:
    """Trains with DDP, then in rounds in several ways; says what came of each."""
    place = RankPlace(rank, world, torch.device("cpu"), "gloo", (folder / "ddp").as_uri(), timeout_s=60.0)
    in_step = with_ddp(place)
    strategy = LocalSgdStrategy(
        replace(place, rendezvous=(folder / "dial").as_uri()), Synchronisation(1, AVERAGE, 1.0, 0.0)
    )
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
    """All weights in a row."""
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def meet(
    dial: LocalSgd, step: int, samples: int, *, total: int = STEPS, stop: bool = False, newest: int = 0, **calls: Any
) -> bool:
    """A round without a host, of `total` steps."""
    nothing: dict[str, Any] = {"meanwhile": lambda: None, "join": lambda: None, **calls}
    return dial.synchronise(step, samples, active=step < total, stop=stop, newest=lambda: newest, **nothing)


def begin(strategy: LocalSgdStrategy) -> tuple[LocalSgd, LocalSgdReplica, Tensor]:
    """A fresh model at the first round, and data for all ranks."""
    model, data = make_model(strategy.place.world_size)
    replica = strategy.replicate(model, RULE, 0.05, Precision("fp32", strategy.place.device))
    dial = LocalSgd(strategy, replica)
    dial.begin(None, 0, 0)
    return dial, replica, data


def own_step(strategy: LocalSgdStrategy, replica: Replica, data: Tensor) -> None:
    """A step on this rank's share of a global batch."""
    share = data.chunk(strategy.place.world_size)[strategy.place.rank]
    replica.backward(replica.module(share).square().mean(), last=True)
    replica.update()


def with_ddp(place: RankPlace) -> Tensor:
    """The weights after training in step."""
    strategy = make_strategy("ddp", place, RunConfig(mode="ddp", gradient_exchange="plain"), Batch.of(1, 2, 1))
    strategy.setup()
    model, data = make_model(place.world_size)
    replica = strategy.replicate(model, RULE, 0.05, Precision("fp32", place.device))
    for step in range(STEPS):
        train_step(strategy, replica, data[step])
    strategy.close()
    return flat(model)


def every_step(strategy: LocalSgdStrategy) -> Tensor:
    """The weights after averaging at every step."""
    dial, replica, data = begin(strategy)
    for step in range(1, STEPS + 1):
        own_step(strategy, replica, data[step - 1])
        assert dial.due(step) and meet(dial, step, step)
    assert dial.over and dial.round == STEPS
    return flat(replica.model)


def in_rounds(strategy: LocalSgdStrategy) -> dict[str, Any]:
    """Two rounds of the outer optimizer and the last one; rank r counts r + 1 times. Before each, state is saved and
    taken up again.
    """
    dial, replica, data = begin(strategy)
    apart, together = [], [flat(replica.model).tolist()]
    for step in range(1, STEPS + 2):
        own_step(strategy, replica, data[(step - 1) % STEPS])
        assert dial.due(step) == (step % OUTER.every == 0)
        if dial.due(step) or step > STEPS:
            apart.append(flat(replica.model).tolist())
            kept = {name: tensor.clone() for name, tensor in replica.outer.tensors().items()}
            replica.outer.load(kept)
            assert meet(dial, step, step * (strategy.place.rank + 1), total=STEPS + 1)
            together.append(flat(replica.model).tolist())
    figures = dial.take_costs()
    return {"apart": apart, "together": together, "sent": figures["sync_bytes"], "over": dial.over}


def stopped(strategy: LocalSgdStrategy) -> dict[str, Any]:
    """Rank 1 is told to stop in the middle of a round, the others reach its end."""
    dial, replica, data = begin(strategy)
    own_step(strategy, replica, data[0])
    before = flat(replica.model)
    met = meet(dial, OUTER.every, 1, stop=strategy.place.rank == 1)
    if strategy.place.rank == 1:
        strategy.count(lambda: None)  # at its end a run's ranks leave together; here they go on to the next test
    return {"met": met, "untouched": torch.equal(before, flat(replica.model)), "round_after_stop": dial.round}


def joined(strategy: LocalSgdStrategy) -> dict[str, Any]:
    """Rank 0 has a part in checkpoint 5, of which the others do not know."""
    dial, replica, data = begin(strategy)
    own_step(strategy, replica, data[0])
    before = flat(replica.model)
    parts: list[bool] = []
    newest = 5 if strategy.place.rank == 0 else 4
    join = lambda: parts.append(torch.equal(before, flat(replica.model)))  # noqa: E731
    assert meet(dial, OUTER.every, 1, newest=newest, join=join)
    return {"parts": parts}


def left_by_the_others(strategy: LocalSgdStrategy) -> str:
    """What rank 0 gets to hear when nobody else comes."""
    dial, _, _ = begin(strategy)
    if strategy.place.rank != 0 or sys.platform == "win32":  # there gloo does not notice; a run's host does
        return ""
    try:
        meet(dial, OUTER.every, 1)
    except RuntimeError as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))) + "\n")
