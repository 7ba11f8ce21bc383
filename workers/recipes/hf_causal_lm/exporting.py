"""A folder that `from_pretrained` opens: architecture, weights, tokenizer; of a LoRA run also the adapter by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import safe_open
from torch import nn

from rankdeck.recipe import ConfigError, Export, copy_tokenizer, read_options
from workers.recipes.hf_causal_lm.folder import CONFIG
from workers.recipes.hf_causal_lm.model import be_quiet, empty_model, with_lora
from workers.recipes.hf_causal_lm.options import Options

ADAPTER: Final = "adapter"
_DTYPES: Final = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def export_folder(given: Export, described: Path) -> None:
    """Fill `given.target`; `described` is the folder with `config.json` and tokenizer that the run keeps."""
    be_quiet(allow_download=False)
    if not (described / CONFIG).is_file():
        raise ConfigError(
            "model", f"The run's {described} is gone.", "Resume the run for a step: its data is prepared again."
        )
    model: Any = empty_model(described)
    options = read_options(given, Options)
    lora = options.training == "lora"
    if lora:
        whole = replace(options, lora_frozen="fp32")  # what is added to them is not to be rounded
        model = with_lora(model, whole, str(given.info["model_name"]))
    _take_weights(model, given.weights)
    if lora:
        model.save_pretrained(given.target / ADAPTER, save_embedding_layers=False)
        model = model.merge_and_unload(safe_merge=True)
    model.config.use_cache = True
    _round(model, _dtype(given, described))
    model.save_pretrained(given.target)
    copy_tokenizer(described, given.target)


def _dtype(given: Export, described: Path) -> torch.dtype:
    """The type of the exported numbers: as requested, or the base model's; fp32 for a model from scratch."""
    if given.dtype != "auto":
        return _DTYPES[given.dtype]
    try:
        config = json.loads((described / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return torch.float32
    named = str(config.get("dtype") or config.get("torch_dtype")).removeprefix("torch.")
    return {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(named, torch.float32)


def _round(model: nn.Module, dtype: torch.dtype) -> None:
    """Convert a model's weights; raise `ConfigError` where one is too large for the type."""
    finite = [bool(torch.isfinite(tensor).all()) for tensor in model.parameters()]
    model.to(dtype)
    after = (bool(torch.isfinite(tensor).all()) for tensor in model.parameters())
    if any(was and not now for was, now in zip(finite, after, strict=True)):
        raise ConfigError("dtype", "A weight is too large for fp16.", "Choose another type.", option="--dtype bf16")


def _take_weights(model: nn.Module, weights: Path) -> None:
    """Copy the file's tensors into the model; names that share a tensor are written once."""
    own = model.state_dict(keep_vars=True)
    taken: set[int] = set()
    with safe_open(weights, framework="pt") as file:
        names = set(file.keys())
        odd = sorted(names - own.keys())
        for name in names & own.keys():
            if tuple(file.get_slice(name).get_shape()) != tuple(own[name].shape):
                odd.append(name)
                continue
            own[name].data.copy_(file.get_tensor(name))
            taken.add(own[name].data_ptr())
    odd += sorted(name for name, tensor in own.items() if tensor.data_ptr() not in taken)
    if odd:
        raise ConfigError(
            "model",
            f"The weights in {weights.name} are not of the model that this run was asked for ({odd[0]}).",
            "Export the run with the settings it was trained with.",
        )
