"""One of two real processes that train a tiny language model in every mode; prints one JSON line.

Run by `test_modes`: `python -m tests.training.workers.recipes.hf_causal_lm.modes_rank RANK WORLD FOLDER`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from core.config import RunConfig
from core.config.batch import resolve_batch
from tests.training.workers.recipes.hf_causal_lm.made import typed_options
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipes.hf_causal_lm.model import be_quiet, checkpointed, trained_model, with_lora
from workers.recipes.hf_causal_lm.samples import Packing, loss
from workers.recipes.hf_causal_lm.sampling import Sampler
from workers.recipes.hf_causal_lm.tokens import tokens_in
from workers.strategies import RankPlace, make_strategy
from workers.training.checkpoint import load_part, take_part, write_part
from workers.training.evaluation import Evaluation

STEPS: Final = 6
HALF: Final = 3
LENGTH: Final = 16
WAYS: Final = ("ddp", "zero1", "zero2", "zero3", "fsdp", "independent")
VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "full": {},
    "lora": {"training": "lora", "lora_rank": 2},
    "lora_bf16": {"training": "lora", "lora_rank": 2, "lora_frozen": "bf16"},
    "checkpointed": {"grad_checkpointing": True},
}


@dataclass(frozen=True)
class Place:
    """Which process this is."""

    rank: int
    world: int
    folder: Path


def packing() -> Packing:
    """Documents of several lengths, shorter and longer than a sample."""
    tokens = np.random.default_rng(5).integers(1, 40, 4000)
    return Packing(tokens, LENGTH, np.cumsum(np.resize([5, 30, 1, 11], 400)))


def train(place: Place, way: str, variant: str, source: str = "llama", resumed_from: str = "") -> dict[str, Any]:
    """A few steps; a commit in the middle; an evaluation and a sampled text at the end."""
    o = typed_options(**VARIANTS[variant])
    mode, stage = ("zero", int(way[-1])) if way.startswith("zero") else (way, 3)
    config = RunConfig(mode=mode, zero_stage=stage, zero_engine="torch")
    name = f"{way}-{variant}-{source}-{resumed_from}"
    alone = mode in ("single", "independent")
    strategy = make_strategy(
        mode,
        RankPlace(
            place.rank, place.world, torch.device("cpu"), "" if alone else "gloo", (place.folder / name).as_uri(), 60.0
        ),
        config,
        resolve_batch(config, 1 if alone else place.world),
    )
    strategy.setup()
    seeding.seed_everything(3)
    model = trained_model(place.folder / source)
    if o.grad_checkpointing:
        checkpointed(model)
    if o.training == "lora":
        model = with_lora(model, o, source)
    precision = Precision("fp32", torch.device("cpu"))
    replica = strategy.replicate(model, Optimization(weight_decay=0.1, clip_norm=1.0), 0.01, precision)
    data, first = packing(), 0
    if resumed_from:
        first = load_part(place.folder / f"{resumed_from}-{variant}-{source}-.half", strategy, replica)["step"]
    losses = []
    replica.warm_up(loss(replica.module, data.batch(np.arange(2))))
    for step in range(first, STEPS):
        if step == HALF and not resumed_from and not alone:
            half = place.folder / f"{name}.half"
            half.mkdir(exist_ok=True)
            write_part(half, take_part(strategy, replica, step, {"step": step}))
            strategy.total([0.0])
        share = np.array_split(np.arange(step * 8, step * 8 + 8), strategy.group_size)[strategy.group_rank]
        with replica.micro_batch(last=True):
            mean = loss(replica.module, data.batch(share))
            replica.backward(mean, last=True)
        replica.set_lr(0.01)
        replica.update()
        losses.append(strategy.total([mean.item()])[0] / strategy.group_size)
    found = {"losses": losses, **look(place, strategy, replica.evaluated, data)}
    strategy.close()
    return found


def look(place: Place, strategy: Any, model: nn.Module, data: Packing) -> dict[str, Any]:
    """What evaluation and sampling say."""
    precision = Precision("fp32", torch.device("cpu"))
    evaluation = Evaluation(5, 5, 2, lambda indices: data.batch(indices, 3000), loss, precision)
    val_loss = evaluation.measure(model, strategy)
    encoder = tokens_in(place.folder / "llama").spec.open()
    model.eval()
    text = Sampler(encoder, [1, 2], 6, LENGTH, 0.0, 3, None, torch.device("cpu"))
    with torch.no_grad():
        return {"val_loss": val_loss, "text": text(model)}


def main(place: Place) -> dict[str, Any]:
    """Everything that `test_modes` looks at."""
    found: dict[str, Any] = {"full": {way: train(place, way, "full") for way in WAYS}}
    if place.rank == 0:
        single = Place(0, 1, place.folder)
        found["full"]["single"] = train(single, "single", "full")
    found["lora"] = {way: train(place, way, "lora") for way in ("ddp", "zero2", "fsdp")}
    found["lora_bf16"] = {way: train(place, way, "lora_bf16") for way in ("ddp", "zero1")}
    found["checkpointed"] = {way: train(place, way, "checkpointed") for way in ("ddp", "fsdp")}
    found["gpt2"] = {way: train(place, way, "lora", "gpt2") for way in ("ddp", "fsdp")}
    pairs = [("fsdp", "ddp"), ("ddp", "zero3")]
    found["resumed"] = {f"{way} from {by}": train(place, way, "full", resumed_from=by) for way, by in pairs}
    found["resumed lora"] = train(place, "fsdp", "lora", resumed_from="ddp")
    found["resumed lora_bf16"] = train(place, "ddp", "lora_bf16", resumed_from="zero1")
    return found


if __name__ == "__main__":
    be_quiet(allow_download=False)
    sys.stdout.write(json.dumps(main(Place(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))) + "\n")
