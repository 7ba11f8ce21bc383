"""ACT-v1 in every mode on two real processes, and stopped and resumed under the real host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.hosted_run import curve, host, lines, make_run, write_text
from tests.helpers.rank_processes import run_ranks

pytest.importorskip("torch", reason="trains for real")

import torch
from torch import Tensor, nn

from tests.training.rank_program import CPU, BareRank
from workers.decoding import write_tokens
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipes.actv1.halting import Rule, judge
from workers.recipes.actv1.model import HierarchicalModel, Shape
from workers.strategies import Strategy
from workers.training.evaluation import Evaluation
from workers.training.task import LossAndMetrics

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(240)]


STEPS: Final = 3
RULE: Final = Rule(3, price=0.01)
LENGTH: Final = 12
WAYS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "ddp": ("ddp", {}),
    "zero 1": ("zero1", {}),
    "zero 2": ("zero2", {}),
    "zero 3": ("zero3", {}),
    "fsdp": ("fsdp", {}),
    "ddp, checkpointed": ("ddp", {}),
    "fsdp, checkpointed": ("fsdp", {}),
    "independent": ("independent", {}),
    "single": ("single", {}),
}


def every_way(rank: BareRank) -> dict[str, Any]:
    found = {}
    for number, (name, (way, settings)) in enumerate(WAYS.items()):
        with rank.strategy(way, str(number), **settings) as strategy:
            found[name] = train(strategy, checkpointed="checkpointed" in name)
    return found


def train(strategy: Strategy, *, checkpointed: bool) -> dict[str, Any]:
    """A few steps of two micro-batches, an evaluation and a text in one mode."""
    seeding.seed_everything(3)
    every = strategy.forward_is_collective
    model = HierarchicalModel(
        Shape(
            31, LENGTH, 16, 2, dropout=0.1, h_layers=1, l_layers=1, h_cycles=2, l_cycles=2,
            halt_max_steps=3, halt_exploration=0.3, every_segment=every, grad_checkpointing=checkpointed,
        )
    )  # fmt: skip
    nn.init.normal_(model.q_head.weight, 0.0, 1.0)
    replica = strategy.replicate(model, Optimization(weight_decay=0.1), 0.01, Precision("fp32", CPU))
    replica.warm_up(loss(replica.module, tokens(1, 7)).loss)
    seeding.seed_everything(strategy.place.rank)
    found: dict[str, Any] = {"losses": [], "steps": []}
    for step in range(STEPS):
        share = tokens(8, step).chunk(strategy.group_size)[strategy.group_rank]
        for part, batch in enumerate(share.chunk(2)):
            with replica.micro_batch(last=part == 1):
                outcome = loss(replica.module, batch)
                replica.backward(outcome.loss / 2, last=part == 1)
            found["losses"].append(float(outcome.metrics["loss"]))
            found["steps"].append(float(outcome.metrics["halt_steps_mean"]))
        replica.update()
    found["evaluation"] = evaluated(replica.evaluated, strategy)
    model.eval()
    text = write_tokens(model.writer(), torch.tensor([1, 2]), 4, 0.8, torch.Generator().manual_seed(4))
    strategy.total([0.0])
    return {**found, "text": text.tolist()}


def loss(model: nn.Module, batch: Tensor) -> LossAndMetrics:
    return judge(model(batch[:, :-1], batch[:, 1:]), RULE)


def evaluated(model: nn.Module, strategy: Strategy) -> list[float]:
    """Of three held-out samples, which two ranks cannot share out evenly: loss, steps."""
    held_out = tokens(3, 99)
    evaluation = Evaluation(3, 3, 2, lambda i: held_out[torch.from_numpy(i)], loss, Precision("fp32", CPU))
    val_loss, figures = evaluation.measure(model, strategy)
    return [val_loss, figures["val_halt_steps_mean"]]


def tokens(count: int, seed: int) -> Tensor:
    """Samples that something can be learned from, shape (count, LENGTH + 1)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 4, (count, LENGTH + 1), generator=generator).cumsum(1) % 31


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_ranks(every_way, 2, tmp_path_factory.mktemp("two"))


@pytest.mark.parametrize("way", ["zero 1", "zero 2", "zero 3", "fsdp", "ddp, checkpointed", "fsdp, checkpointed"])
def test_every_mode_trains_what_ddp_trains(two: list[dict[str, Any]], way: str) -> None:
    """Also where every rank computes all segments, since each holds a part of the weights only."""
    for rank in two:
        ddp, found = rank["ddp"], rank[way]
        assert found["losses"] == pytest.approx(ddp["losses"], abs=1e-4)
        assert found["steps"] == pytest.approx(ddp["steps"], abs=1e-6)
        assert found["evaluation"] == pytest.approx(ddp["evaluation"], abs=1e-4)
        assert found["text"] == ddp["text"]


def test_ranks_halt_by_themselves_and_evaluate_together(two: list[dict[str, Any]]) -> None:
    assert two[0]["ddp"]["steps"] != two[1]["ddp"]["steps"], "each rank's tokens take their own time"
    assert any(1 < steps < 3 for steps in two[0]["ddp"]["steps"])
    assert two[0]["ddp"]["evaluation"] == two[1]["ddp"]["evaluation"]
    assert two[0]["independent"]["losses"] != two[1]["independent"]["losses"]
    assert two[0]["single"] == two[1]["single"]


TINY = {
    "h_layers": 1, "l_layers": 1, "n_head": 2, "n_embd": 16, "halt_max_steps": 3, "halt_exploration": 0.3,
    "step_price": 0.02, "sample_tokens": 8, "warmup_steps": 2,
}  # fmt: skip


def test_stopped_and_resumed_it_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Halting draws numbers at every step: they too go on where they stood."""
    text = write_text(tmp_path / "text.txt", 20_000)
    settings: dict[str, Any] = {"recipe": "actv1", "options": TINY, "steps": 24, "lr": 0.01}
    whole = make_run(tmp_path / "whole", text, "ddp", 2, **settings)
    assert host(whole) == 0
    parted = make_run(tmp_path / "parted", text, "ddp", 2, **settings)
    assert host(parted, stop_at=6) == 0
    stopped = max(curve(parted))
    assert stopped < 24 and host(parted) == 0
    for name in ("loss", "halt_steps_mean", "q_loss", "objective", "accuracy"):
        assert curve(parted, name) == curve(whole, name)
    steps = curve(whole, "halt_steps_mean")
    assert len(steps) == 24 and all(1 <= value <= 3 for value in steps.values())
    assert len({line["halt_steps_mean"] for line in lines(whole, "step") if line["step"] == 20}) == 2
    last = [lines(store, "eval")[-1] for store in (whole, parted)]
    assert last[0]["val_loss"] == last[1]["val_loss"] < curve(whole)[1] - 0.5
    assert last[0]["val_halt_steps_mean"] == last[1]["val_halt_steps_mean"]
    assert lines(whole, "sample")[-1]["text"] == lines(parted, "sample")[-1]["text"] != ""


# --- bad input --------------------------------------------------------------------------------------------
