"""A folder that `from_pretrained` opens: architecture, weights, tokenizer; of a LoRA run also the adapter by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from safetensors import safe_open
from torch import nn

from rankdeck.recipe import ConfigError, Export, copy_tokenizer, read_options
from workers.recipes.hf_causal_lm.folder import CONFIG
from workers.recipes.hf_causal_lm.model import be_quiet, empty_model, with_lora
from workers.recipes.hf_causal_lm.options import Options

ADAPTER: Final = "adapter"


def export_folder(given: Export, described: Path) -> None:
    """Fills `given.target`; `described` is the folder with `config.json` and tokenizer that the run keeps.

    Raises:
        ConfigError: The run has not kept them, or the weights are of another model.
    """
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
    model.save_pretrained(given.target)
    copy_tokenizer(described, given.target)


def _take_weights(model: nn.Module, weights: Path) -> None:
    """Copies the file's tensors into the model; names that share a tensor are written once.

    Raises:
        ConfigError: They are of another model.
    """
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
