"""A tiny model trained in every mode by two real processes: the same model each time, whole or in shards."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")
pytest.importorskip("transformers", reason="the recipe's models are those of transformers")

from tests.helpers.rank_processes import run_rank_processes
from tests.training.workers.recipes.hf_causal_lm.made import make_folder

# Asked for, not imported: an import takes two seconds, and every process that runs tests collects this file.
needs_peft = pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="LoRA is peft's")
pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(240), needs_peft]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two ranks found."""
    folder = tmp_path_factory.mktemp("modes")
    for architecture in ("llama", "gpt2"):
        make_folder(folder / architecture, architecture)
    return run_rank_processes("tests.training.workers.recipes.hf_causal_lm.modes_rank", 2, folder)


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
