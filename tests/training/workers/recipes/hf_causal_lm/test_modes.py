"""A tiny model trained in every mode by two real processes: the same model each time, whole or in shards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
from torch import nn

from rankdeck.recipe import tokens_in
from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import CPU, BareRank
from tests.training.workers.recipes.hf_causal_lm.made import make_folder, needs_peft, needs_transformers, typed_options
from workers.decoding import write_tokens
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipes.hf_causal_lm.model import be_quiet, checkpointed, trained_model, with_lora, writer
from workers.recipes.hf_causal_lm.samples import Packing, loss
from workers.strategies import Strategy
from workers.training.checkpoint import load_part, take_part, write_part
from workers.training.evaluation import Evaluation
from workers.training.training_mode import begin_training, evaluating

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(240), needs_transformers, needs_peft]


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


def packing() -> Packing:
    """Documents of several lengths, shorter and longer than a sample."""
    tokens = np.random.default_rng(5).integers(1, 40, 4000)
    return Packing(tokens, LENGTH, np.cumsum(np.resize([5, 30, 1, 11], 400)))


def train(rank: BareRank, way: str, variant: str, source: str = "llama", resumed_from: str = "") -> dict[str, Any]:
    """A few steps; a commit in the middle; an evaluation and a sampled text at the end."""
    o = typed_options(**VARIANTS[variant])
    name = f"{way}-{variant}-{source}-{resumed_from}"
    strategy = rank.set_up(way, name)
    seeding.seed_everything(3)
    model = trained_model(rank.folder / source)
    if o.grad_checkpointing:
        checkpointed(model)
    if o.training == "lora":
        model = with_lora(model, o, source)
    begin_training(model)  # as a run does: what `from_pretrained` returns would recompute nothing
    precision = Precision("fp32", CPU)
    replica = strategy.replicate(model, Optimization(weight_decay=0.1, clip_norm=1.0), 0.01, precision)
    data, first = packing(), 0
    if resumed_from:
        first = load_part(rank.folder / f"{resumed_from}-{variant}-{source}-.half", strategy, replica)["step"]
    losses = []
    replica.warm_up(loss(replica.module, data.batch(np.arange(2))))
    for step in range(first, STEPS):
        if step == HALF and not resumed_from and way not in ("single", "independent"):
            half = rank.folder / f"{name}.half"
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
    found = {"losses": losses, **look(rank, strategy, replica.evaluated, data)}
    strategy.close()
    return found


def look(rank: BareRank, strategy: Strategy, model: nn.Module, data: Packing) -> dict[str, Any]:
    precision = Precision("fp32", CPU)
    evaluation = Evaluation(5, 5, 2, lambda indices: data.batch(indices, 3000), loss, precision)
    val_loss, _ = evaluation.measure(model, strategy)
    encoder = tokens_in(rank.folder / "llama").spec.open()
    with evaluating(model):
        next_logits = writer(model, LENGTH, encoder.vocab_size)
        written = write_tokens(next_logits, torch.tensor([1, 2]), 6, 0.0, torch.Generator())
    return {"val_loss": val_loss, "text": encoder.decode(written[2:].tolist())}


def every_way(rank: BareRank) -> dict[str, Any]:
    be_quiet(allow_download=False)
    found: dict[str, Any] = {"full": {way: train(rank, way, "full") for way in WAYS}}
    if rank.rank == 0:
        found["full"]["single"] = train(rank, "single", "full")
    found["lora"] = {way: train(rank, way, "lora") for way in ("ddp", "zero2", "fsdp")}
    found["lora_bf16"] = {way: train(rank, way, "lora_bf16") for way in ("ddp", "zero1")}
    found["checkpointed"] = {way: train(rank, way, "checkpointed") for way in ("ddp", "fsdp")}
    found["gpt2"] = {way: train(rank, way, "lora", "gpt2") for way in ("ddp", "fsdp")}
    pairs = [("fsdp", "ddp"), ("ddp", "zero3")]
    found["resumed"] = {f"{way} from {by}": train(rank, way, "full", resumed_from=by) for way, by in pairs}
    found["resumed lora"] = train(rank, "fsdp", "lora", resumed_from="ddp")
    found["resumed lora_bf16"] = train(rank, "ddp", "lora_bf16", resumed_from="zero1")
    return found


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("modes")
    for architecture in ("llama", "gpt2"):
        make_folder(folder / architecture, architecture)
    return run_ranks(every_way, 2, folder)


def test_every_mode_trains_the_same_model(two: list[dict[str, Any]]) -> None:
    full = two[0]["full"]
    assert full["ddp"]["losses"][-1] < full["ddp"]["losses"][0] - 0.5, "it learns"
    assert set(full) == {"single", "ddp", "zero1", "zero2", "zero3", "fsdp", "independent"}
    for way, found in full.items():
        assert found["losses"] == pytest.approx(full["ddp"]["losses"], rel=1e-5), way
        assert found["val_loss"] == pytest.approx(full["ddp"]["val_loss"], rel=1e-5), way
        assert found["text"] == full["ddp"]["text"], way
    assert full["zero1"] == full["ddp"]


def test_lora_learns_and_is_sharded_too(two: list[dict[str, Any]]) -> None:
    for name in ("lora", "gpt2"):
        ddp = two[0][name]["ddp"]["losses"]
        assert ddp[-1] < ddp[0] - 0.1
        for way, found in two[0][name].items():
            assert found["losses"] == pytest.approx(ddp, rel=1e-5), (name, way)
    assert two[0]["lora"]["ddp"]["losses"] != two[0]["full"]["ddp"]["losses"]


def test_frozen_weights_in_bf16_give_nearly_the_same(two: list[dict[str, Any]]) -> None:
    rough, exact = two[0]["lora_bf16"], two[0]["lora"]["ddp"]["losses"]
    assert rough["ddp"] == rough["zero1"] and rough["ddp"]["losses"] != exact
    assert rough["ddp"]["losses"] == pytest.approx(exact, abs=0.05)
    assert two[0]["resumed lora_bf16"]["losses"] == rough["ddp"]["losses"][3:]


def test_checkpointing_changes_nothing_but_memory(two: list[dict[str, Any]]) -> None:
    for way, found in two[0]["checkpointed"].items():
        assert found["losses"] == pytest.approx(two[0]["full"][way]["losses"], rel=1e-6), way


def test_one_mode_takes_up_what_another_wrote(two: list[dict[str, Any]]) -> None:
    for change, found in two[0]["resumed"].items():
        whole = two[0]["full"][change.partition(" ")[0]]
        assert found["losses"] == pytest.approx(whole["losses"][3:], rel=1e-5), change
    assert two[0]["resumed lora"]["losses"] == pytest.approx(two[0]["lora"]["fsdp"]["losses"][3:], rel=1e-5)
