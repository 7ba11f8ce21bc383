"""Checks of settings before a rank starts; they need no torch and no network.

The ranks check the same again: between the two a folder may have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rankdeck.recipe import (
    Checked,
    ConfigError,
    Request,
    check_heads,
    check_lfs_pointer,
    check_packages,
    has_tokenizer,
    read_options,
)
from workers.recipes.hf_causal_lm.folder import (
    ModelFolder,
    check_tokenizer_fits,
    largest_token,
    open_folder,
)
from workers.recipes.hf_causal_lm.options import Options
from workers.recipes.hf_causal_lm.source import Source, find_source, not_here

_HIGH_LR = {"full": 2e-4, "lora": 2e-3}


def check(request: Request) -> list[str] | Checked:
    """Refuse what cannot be trained; samples are no longer than a pretrained model's own."""
    config = request.config
    options = read_options(request, Options)
    shards = config.mode == "fsdp" or (config.mode == "zero" and config.zero_stage > 1)
    # What is needed of the model is in the run's folder, wherever the model itself is by now.
    if request.resumes:
        if options.training == "lora":
            check_packages(["peft"], "LoRA")
            _check_formats(options, shards)
        return []
    settings: dict[str, int] = {}
    notes: list[str] = []
    source, seq_len = find_source(config.model or ""), config.seq_len
    if source.folder is not None and "seq_len" in request.at_default:
        longest = open_folder(source.folder).longest or seq_len
        if longest < seq_len:
            notes = [f"Samples have {longest:,} tokens instead of {seq_len:,}: the model has no more positions."]
            seq_len = settings["seq_len"] = longest
    notes += check_model(config.model or "", seq_len, options, config.lr, shards_weights=shards)
    return Checked(notes, settings)


def check_model(
    model: str, seq_len: int, options: Options, lr: float = 0.0, *, shards_weights: bool = False
) -> list[str]:
    """Refuse what cannot be trained (`ConfigError`, `MissingPackageError`); return notes for the user.

    `shards_weights`: each device holds a part of the weights only.
    """
    source = find_source(model)
    if options.training == "lora":
        _check_lora(source)
        _check_formats(options, shards_weights)
    named = options.tokenizer_file or ""
    if named:
        tokenizer_path(named)
    if source.kind == "scratch":
        check_sizes(source.name, options)
        return []
    if source.folder is None:
        if not options.allow_download:
            raise not_here(source)
        return [f"The model {source.name} is not on this machine and will be downloaded; its size is shown before."]
    found = open_folder(source.folder)
    _check_length(found, seq_len)
    _check_tokenizer(found, named)
    if options.training == "lora" and not any("expert" in key for key in found.config):
        # Experts get other names when they are put together.
        check_targets(lora_targets(options), found.modules)
    return _notes(options.training, lr)


def lora_targets(options: Options) -> list[str]:
    """The modules that LoRA adapts; empty: all linear layers."""
    names = [name.strip() for name in options.lora_targets.split(",")]
    return [name for name in names if name and name != "all-linear"]


def check_targets(targets: Sequence[str], modules: set[str]) -> None:
    for target in targets:
        if not any(name == target or name.endswith(f".{target}") for name in modules):
            parts = [name.split(".") for name in modules]
            last = sorted({name[-1] for name in parts if any(part.isdigit() for part in name)})
            raise ConfigError(
                "lora_targets",
                f"No module of the model is called {target!r}.",
                f"Choose from: {', '.join(last[:20])}; or leave lora_targets empty for all linear layers.",
                title="LoRA has nothing to attach to",
            )


def check_sizes(architecture: str, options: Options) -> None:
    width, heads, shared = options.n_embd, options.n_head, options.n_kv_head
    check_heads(width, heads)
    if architecture == "gpt2":
        if shared not in (0, heads):
            raise ConfigError(
                "n_kv_head",
                f"GPT-2 has as many key-value heads as heads ({heads}), but {shared} were requested.",
                "Leave the key-value heads at 0, or choose the model llama or qwen3.",
                option="--set n_kv_head=0, or --model llama",
            )
        return
    if shared and heads % shared:
        raise ConfigError(
            "n_kv_head",
            f"The {heads} heads cannot share {shared} key-value heads evenly.",
            "Choose a divisor of the heads.",
        )
    if width // heads % 2:
        raise ConfigError(
            "n_embd",
            f"A head would be {width // heads} numbers wide; rotary positions need an even number.",
            "Change the width or the heads.",
        )


def tokenizer_path(text: str) -> Path:
    """The ``tokenizer.json`` that a setting names, itself or by its folder; raises `ConfigError`."""
    path = Path(text).expanduser()
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        raise ConfigError(
            "tokenizer_file", f"There is no tokenizer in {path}.", "Name a tokenizer.json, or a folder that holds one."
        )
    check_lfs_pointer(path, field="tokenizer_file")
    largest_token(path)
    return path


def _check_lora(source: Source) -> None:
    check_packages(["peft"], "LoRA")
    if source.kind == "scratch":
        raise ConfigError(
            "training",
            f"LoRA freezes a pretrained model's weights, but {source.name} would be created from scratch and has "
            "learned nothing yet.",
            "Choose the folder of a pretrained model, or train all weights.",
            option="--model FOLDER, or --set training=full",
        )


def _check_formats(options: Options, shards_weights: bool) -> None:
    if shards_weights and options.lora_frozen != "fp32":
        raise ConfigError(
            "lora_frozen",
            "If each device holds a shard of the weights (fsdp, ZeRO stages 2 and 3), PyTorch needs all of a layer's "
            f"in one format, and {options.lora_frozen} was chosen for the frozen ones.",
            "Choose fp32 for the frozen weights, or the mode DDP.",
            option="--set lora_frozen=fp32, or --mode ddp",
        )


def _check_length(model: ModelFolder, seq_len: int) -> None:
    longest = model.longest
    if longest is not None and seq_len > longest:
        raise ConfigError(
            "seq_len",
            f"The sequence length {seq_len:,} exceeds the model's maximum ({longest:,}).",
            f"Choose at most {longest}.",
            option=f"--seq-len {longest}",
        )


def _check_tokenizer(model: ModelFolder, own: str) -> None:
    path = tokenizer_path(own) if own else model.folder / "tokenizer.json"
    if path.is_file():
        check_tokenizer_fits(path, model)
    elif not has_tokenizer(model.folder):
        raise ConfigError(
            "tokenizer_file",
            f"{model.folder} holds no tokenizer (tokenizer.json).",
            "Put the model's tokenizer files there, or choose a tokenizer file.",
            option="--set tokenizer_file=PATH",
            title="The model has no tokenizer",
        )


def _notes(training: str, lr: float) -> list[str]:
    high = _HIGH_LR[training]
    if lr <= high:
        return []
    usual = "1e-5 to 1e-4" if training == "full" else "1e-4 to 5e-4"
    return [f"The learning rate {lr:g} is high for a pretrained model; usual values are {usual}."]
