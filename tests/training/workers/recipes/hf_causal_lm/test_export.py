"""Models opened from folders, and folders made of trained weights: numbers compared, in this process."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
from safetensors.torch import load, load_file, save_file
from torch import Tensor, nn

from core.config import RunConfig
from rankdeck.recipe import ConfigError
from tests.training.workers.recipes.hf_causal_lm.made import (
    make_folder,
    needs_peft,
    needs_transformers,
    options,
    typed_options,
)
from workers.recipe_api import Export
from workers.recipes.hf_causal_lm.exporting import export_folder
from workers.recipes.hf_causal_lm.model import empty_model, trained_model, with_lora

pytestmark = [
    pytest.mark.windows,
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),  # peft asks for it
    needs_transformers,
    needs_peft,
]

TOKENS = torch.arange(12)[None]


def logits(model: nn.Module) -> Tensor:
    with torch.no_grad():
        found: Tensor = model.eval()(input_ids=TOKENS).logits
    return found


def disturb(model: nn.Module) -> None:
    """As training would: every trained weight is another afterwards."""
    torch.manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.05)


def given(tmp_path: Path, model: nn.Module, source: Path, **changes: Any) -> Export:
    """What the recipe's `export` gets after a run: each tensor once, whatever its names."""
    held: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict().items():
        held.setdefault(tensor.data_ptr(), (name, tensor))
    save_file(dict(held.values()), tmp_path / "model.safetensors")
    data, target = tmp_path / "data", tmp_path / "target"
    data.mkdir()
    target.mkdir()
    info = {"info": {"model_name": str(source)}}
    (data / "data.json").write_text(json.dumps(info), encoding="utf-8")
    config = RunConfig(recipe="hf_causal_lm", options=options(**changes))
    return Export(config, data, tmp_path / "model.safetensors", target)


@pytest.mark.parametrize("architecture", ["gpt2", "llama", "qwen3"])
def test_an_exported_model_says_what_the_trained_one_says(tmp_path: Path, architecture: str) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = make_folder(tmp_path / "source", architecture)
    model = trained_model(source)
    disturb(model)
    export = given(tmp_path, model, source)
    export_folder(export, source)
    opened = AutoModelForCausalLM.from_pretrained(export.target)
    assert torch.allclose(logits(opened), logits(model), atol=1e-6)
    assert opened.config.use_cache
    assert AutoTokenizer.from_pretrained(export.target).eos_token == "<|endoftext|>"


@pytest.mark.parametrize(
    ("base", "asked", "exported"),
    [
        ("bfloat16", "auto", torch.bfloat16),
        ("float16", "auto", torch.float16),
        ("", "auto", torch.float32),
        ("bfloat16", "fp32", torch.float32),
        ("float32", "fp16", torch.float16),
    ],
)
def test_the_numbers_are_those_of_the_base_or_as_asked(
    base: str, asked: str, exported: torch.dtype, tmp_path: Path
) -> None:
    source = make_folder(tmp_path / "source", "llama")
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config = {name: value for name, value in config.items() if name not in ("dtype", "torch_dtype")}
    config |= {"dtype": base} if base else {}
    (source / "config.json").write_text(json.dumps(config), encoding="utf-8")
    export = dataclasses.replace(given(tmp_path, trained_model(source), source), dtype=asked)
    export_folder(export, source)
    assert {tensor.dtype for tensor in load_file(export.target / "model.safetensors").values()} == {exported}


def test_a_weight_that_fp16_cannot_hold_is_not_exported(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "source", "llama")
    model = trained_model(source)
    next(model.parameters()).data[0, 0] = 1e6
    export = dataclasses.replace(given(tmp_path, model, source), dtype="fp16")
    with pytest.raises(ConfigError, match="too large for fp16"):
        export_folder(export, source)


def test_frozen_weights_take_half_the_room_and_are_merged_whole(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    source = make_folder(tmp_path / "source", "llama")
    settings = {"training": "lora", "lora_frozen": "bf16"}
    model = with_lora(trained_model(source), typed_options(**settings), str(source))
    kinds = {(parameter.requires_grad, parameter.dtype) for parameter in model.parameters()}
    assert kinds == {(True, torch.float32), (False, torch.bfloat16)}
    disturb(model)
    export = given(tmp_path, model, source, **settings)
    export_folder(export, source)
    merged = AutoModelForCausalLM.from_pretrained(export.target)
    assert torch.allclose(logits(merged), logits(model).float(), atol=0.05)
    assert {parameter.dtype for parameter in merged.parameters()} == {torch.float32}


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_lora_is_merged_and_its_adapter_fits_the_model_it_came_from(tmp_path: Path, architecture: str) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    source = make_folder(tmp_path / "source", architecture)
    settings = {"training": "lora", "lora_rank": 4, "lora_alpha": 12.0}
    model = with_lora(trained_model(source), typed_options(**settings), str(source))
    plain = logits(model)
    assert torch.allclose(plain, logits(trained_model(source)), atol=1e-6), "untrained, it changes nothing"
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert trained and all("lora_" in name for name in trained)
    disturb(model)

    export = given(tmp_path, model, source, **settings)
    export_folder(export, source)
    merged = AutoModelForCausalLM.from_pretrained(export.target)
    adapted = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(source), export.target / "adapter")
    assert torch.allclose(logits(merged), logits(model), atol=1e-4)
    assert torch.allclose(logits(adapted), logits(model), atol=1e-4)
    assert not torch.allclose(logits(merged), plain, atol=1e-2)
    written = json.loads((export.target / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert written["base_model_name_or_path"] == str(source)


def test_weights_of_another_model_are_not_exported(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "source", "llama")
    export = given(tmp_path, empty_model(make_folder(tmp_path / "other", "llama", n_layer=1)), source)
    with pytest.raises(ConfigError, match=r"layers\.1\."):
        export_folder(export, source)


def test_weights_that_are_missing_are_not_made_up(tmp_path: Path) -> None:
    source = make_folder(tmp_path / "source", "llama")
    weights = load((source / "model.safetensors").read_bytes())  # Windows writes over no file that is mapped
    lost = next(name for name in weights if name.endswith("layers.1.mlp.up_proj.weight"))
    del weights[lost]
    save_file(weights, source / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=r"lack .*layers\.1\.mlp\.up_proj\.weight"):
        trained_model(source)


def test_lora_targets_are_held_against_the_model(tmp_path: Path) -> None:
    model = trained_model(make_folder(tmp_path / "source", "llama"))
    with pytest.raises(ConfigError, match="No module of the model is called 'c_attn'") as caught:
        with_lora(model, typed_options(training="lora", lora_targets="c_attn"), "x")
    assert "q_proj" in caught.value.next_step
    chosen = with_lora(model, typed_options(training="lora", lora_targets="q_proj, v_proj"), "x")
    trained = {name.split(".")[-4] for name, parameter in chosen.named_parameters() if parameter.requires_grad}
    assert trained == {"q_proj", "v_proj"}
