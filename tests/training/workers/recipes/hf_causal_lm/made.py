"""Tiny models and tokenizers in folders, as `save_pretrained` leaves them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from core.config import RunConfig
from core.recipes.catalog import get_recipe
from core.recipes.manifest import apply_recipe
from workers.recipes.hf_causal_lm.model import empty_model, scratch_config, write_config
from workers.recipes.hf_causal_lm.options import Options
from workers.recipes.hf_causal_lm.tokens import learn

# Asked for, not imported: an import takes a second or two, and every process that runs tests collects these files.
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="the recipe's models are those of transformers"
)
needs_peft = pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="LoRA is peft's")

TEXTS = ["the cat sat on the mat. ", "a dog ran up the hill. ", "größe und maß.\n"]
LENGTH = 32
SIZES = {"n_layer": 2, "n_head": 2, "n_kv_head": 0, "n_embd": 16, "dropout": 0.0}


def options(**changes: Any) -> dict[str, Any]:
    config = apply_recipe(RunConfig(recipe="hf_causal_lm"), get_recipe("hf_causal_lm"))
    return {**config.options, **SIZES, **changes}


def typed_options(**changes: Any) -> Options:
    """The same as an object, as the recipe reads them."""
    return Options(**{"tokenizer_file": None, **options(**changes)})


def make_model(
    folder: Path, architecture: str = "llama", vocab: int = 300, length: int = LENGTH, **sizes: Any
) -> nn.Module:
    """A model with random weights, made from its `config.json` in `folder`; the same at every call."""
    write_config(scratch_config(architecture, typed_options(**sizes), length, vocab, 0), folder)
    torch.manual_seed(3)
    model = empty_model(folder)
    with torch.no_grad():  # beyond the beginning's small numbers, so that what a token sees shows in its logits
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(8.0)
    return model


def make_folder(
    folder: Path, architecture: str = "llama", vocab: int = 300, length: int = LENGTH, **sizes: Any
) -> Path:
    model: Any = make_model(folder, architecture, vocab, length, **sizes)
    model.save_pretrained(folder)
    learn(TEXTS * 20, vocab, folder)
    return folder
