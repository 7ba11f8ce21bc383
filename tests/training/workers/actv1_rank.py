"""One of two real processes that train a tiny ACT-v1 in every mode; prints one JSON line.

Run by `test_actv1_modes`: `python -m tests.training.workers.actv1_rank RANK WORLD FOLDER`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from core.config import RunConfig
from core.config.batch import resolve_batch
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipes.actv1.halting import Rule
from workers.recipes.actv1.layers import LayerShape
from workers.recipes.actv1.model import HierarchicalModel, Shape
from workers.recipes.actv1.train import loss_and_metrics
from workers.strategies import RankPlace, Strategy, make_strategy
from workers.training.evaluation import Evaluation
from workers.training.task import LossAndMetrics

STEPS: Final = 3
RULE: Final = Rule(3, price=0.01)
LENGTH: Final = 12
CPU: Final = torch.device("cpu")
WAYS: Final = (
    ("ddp", "ddp", {}),
    ("ddp, static graph", "ddp", {"static_graph": True}),
    ("zero 1", "zero", {"zero_stage": 1}),
    ("zero 2", "zero", {"zero_stage": 2}),
    ("zero 3", "zero", {"zero_stage": 3}),
    ("fsdp", "fsdp", {"zero_stage": 3}),
    ("ddp, checkpointed", "ddp", {"checkpointed": True}),
    ("fsdp, checkpointed", "fsdp", {"zero_stage": 3, "checkpointed": True}),
    ("independent", "independent", {}),
    ("single", "single", {}),
)


def train(place: tuple[int, int, Path], number: int) -> dict[str, Any]:
    """A few steps of two micro-batches, an evaluation and a text in one mode."""
    rank, world, folder = place
    _, mode, settings = WAYS[number]
    checkpointed = settings.get("checkpointed", False)
    settings = {key: value for key, value in settings.items() if key != "checkpointed"}
    if mode == "single":
        rank, world = 0, 1
    backend = "" if mode in ("single", "independent") else "gloo"
    url = (folder / f"rendezvous-{number}").as_uri()
    config = RunConfig(**{"mode": mode, "zero_engine": "torch", **settings})
    strategy = make_strategy(
        mode, RankPlace(rank, world, CPU, backend, url, timeout_s=60.0), config, resolve_batch(config, world)
    )
    strategy.setup()
    seeding.seed_everything(3)
    every = strategy.forward_is_collective
    model = HierarchicalModel(
        Shape(
            31, LENGTH, LayerShape(16, 2, dropout=0.1), h_layers=1, l_layers=1, h_cycles=2, l_cycles=2,
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
    text = model.generate(torch.tensor([1, 2]), 4, 0.8, torch.Generator().manual_seed(4))
    strategy.total([0.0])
    strategy.close()
    return {**found, "text": text.tolist()}


def loss(model: nn.Module, batch: Tensor) -> LossAndMetrics:
    """The recipe's own."""
    return loss_and_metrics(model, batch, RULE)


def evaluated(model: nn.Module, strategy: Strategy) -> list[float]:
    """Of three held-out samples, which two ranks cannot share out evenly: loss, steps."""
    held_out = tokens(3, 99)
    evaluation = Evaluation(3, 3, 2, lambda i: held_out[torch.from_numpy(i)], loss, Precision("fp32", CPU))
    val_loss, figures = evaluation.measure_all(model, strategy)
    return [val_loss, figures["val_halt_steps_mean"]]


def tokens(count: int, seed: int) -> Tensor:
    """Samples that something can be learned from, shape (count, LENGTH + 1)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 4, (count, LENGTH + 1), generator=generator).cumsum(1) % 31


if __name__ == "__main__":
    own = (int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    sys.stdout.write(json.dumps({name: train(own, number) for number, (name, *_) in enumerate(WAYS)}) + "\n")
