"""The model: made from sizes, or opened from a folder; whole, or with LoRA beside its weights.

Weights are fp32 here, but for frozen ones if chosen; the run's precision is the trainer's business.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from rankdeck.recipe import ConfigError
from workers.recipes.hf_causal_lm.check import check_targets, lora_targets
from workers.recipes.hf_causal_lm.folder import CONFIG
from workers.recipes.hf_causal_lm.options import Options

# LLaMA's inner width is two thirds of four times the width, rounded up to a multiple of this.
_SWIGLU: Final = 32


def be_quiet(allow_download: bool) -> None:
    """Turn off the libraries' progress bars and, unless downloads were allowed, their use of the network."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    if not allow_download:
        os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    bars: Any = transformers.utils.logging
    bars.disable_progress_bar()


def scratch_config(architecture: str, options: Options, seq_len: int, vocab_size: int, end: int | None) -> Any:
    """A configuration of one of `source.SCRATCH` from the options' sizes; `end` is the id that ends a document."""
    from transformers import GPT2Config, LlamaConfig, Qwen3Config

    width, heads, dropout = options.n_embd, options.n_head, options.dropout
    common = {"vocab_size": vocab_size, "bos_token_id": end, "eos_token_id": end, "tie_word_embeddings": True}
    if architecture == "gpt2":
        config: Any = GPT2Config(
            n_positions=seq_len, n_embd=width, n_layer=options.n_layer, n_head=heads,
            resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout, **common,
        )  # fmt: skip
        config.architectures = ["GPT2LMHeadModel"]
        return config
    make: Any = LlamaConfig if architecture == "llama" else Qwen3Config
    config = make(
        hidden_size=width, intermediate_size=-(-8 * width // (3 * _SWIGLU)) * _SWIGLU,
        num_hidden_layers=options.n_layer, num_attention_heads=heads,
        num_key_value_heads=options.n_kv_head or heads, head_dim=width // heads,
        max_position_embeddings=seq_len, attention_dropout=dropout, **common,
    )  # fmt: skip
    config.architectures = ["LlamaForCausalLM" if architecture == "llama" else "Qwen3ForCausalLM"]
    return config


@contextmanager
def _read_config(folder: Path) -> Iterator[Any]:
    """The configuration in `folder`; raises `ConfigError` where transformers cannot open it."""
    from transformers import AutoConfig

    try:
        config: Any = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        config.use_cache = False
        yield config
    except (ValueError, KeyError, OSError, RuntimeError) as error:
        raise ConfigError(
            "model",
            f"transformers cannot open the model in {folder}: {' '.join(str(error).split())[:400]}",
            "Choose another model, or update the package: pip install -U transformers",
            title="The model cannot be opened",
        ) from error


def empty_model(folder: Path) -> nn.Module:
    """The model whose `config.json` lies in `folder`, with random weights."""
    with _read_config(folder) as config:
        return made_from(config)


def made_from(config: Any) -> nn.Module:
    from transformers import AutoModelForCausalLM

    made: nn.Module = AutoModelForCausalLM.from_config(config, dtype=torch.float32, trust_remote_code=False)
    return made


def trained_model(folder: Path) -> nn.Module:
    """The model in a folder, with its weights; raises `ConfigError` where some are missing."""
    from transformers import AutoModelForCausalLM

    with _read_config(folder) as config:
        made, report = AutoModelForCausalLM.from_pretrained(
            folder, config=config, dtype=torch.float32, use_safetensors=True, local_files_only=True,
            trust_remote_code=False, output_loading_info=True,
        )  # fmt: skip
    lost = sorted(report["missing_keys"])
    odd = [entry[0] if isinstance(entry, tuple | list) else entry for entry in report["mismatched_keys"]]
    if lost or odd:
        what = f"lack {lost[0]}" if lost else f"have another shape in {odd[0]}"
        raise ConfigError(
            "model",
            f"The weights in {folder} do not belong to its {CONFIG}: they {what} ({len(lost) + len(odd)} such).",
            "Download or copy the model again.",
            title="The model is damaged",
        )
    model: nn.Module = made
    return model


def with_lora(model: nn.Module, options: Options, name: str) -> nn.Module:
    """`model` frozen, with small trained matrices beside its linear layers; the adapter bears `name`.

    Method: Hu et al., LoRA (arXiv 2106.09685).
    """
    from peft import LoraConfig, TaskType, get_peft_model

    targets = lora_targets(options)
    config: Any = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=options.lora_rank,
        lora_alpha=options.lora_alpha,
        lora_dropout=options.lora_dropout,
        target_modules=targets or "all-linear",
        # GPT-2's linear layers keep their matrices the other way round.
        fan_in_fan_out=any(type(module).__name__ == "Conv1D" for module in model.modules()),
    )
    names = {name for name, module in model.named_modules() if getattr(module, "weight", None) is not None}
    check_targets(targets, names)
    named: Any = model
    # What peft writes into the adapter's own configuration.
    named.name_or_path = name
    try:
        made: nn.Module = get_peft_model(named, config)
    except ValueError as error:
        raise ConfigError(
            "lora_targets",
            f"LoRA cannot be attached: {' '.join(str(error).split())[:300]}",
            "Choose other lora_targets, or leave it empty for all linear layers.",
            title="LoRA cannot be attached",
        ) from error
    if options.lora_frozen == "bf16":
        for parameter in made.parameters():
            if not parameter.requires_grad:
                parameter.data = parameter.data.to(torch.bfloat16)
    return made


def checkpointed(model: nn.Module) -> None:
    """Turn gradient checkpointing on; raise `ConfigError` where the architecture has none."""
    made: Any = model
    try:
        if hasattr(made, "activation_checkpointing_enable"):  # its name since transformers 5
            made.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
        else:
            made.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    except ValueError as error:
        raise ConfigError(
            "grad_checkpointing", f"This architecture cannot: {error}", "Turn gradient checkpointing off."
        ) from None


def writer(model: nn.Module, window: int, vocab_size: int, *, keeps_past: bool = True) -> Callable[[Tensor], Tensor]:
    """A function for the logits of the token after a text, shape (time,), that grows by a token at each call.

    Args:
        model: In evaluation mode.
        window: The most tokens before it that each one depends on.
        vocab_size: Tokens; models often have more rows.
        keeps_past: Each call is a pass over the new token alone, as long as the window holds the text. Not where the
            weights are spread over the ranks: sharding hands outputs on as copies, and a cache is none.
    """
    past: Any = None
    known = 0

    def next_logits(text: Tensor) -> Tensor:
        nonlocal past, known
        fits = keeps_past and len(text) <= window
        if fits and past is not None:
            found = model(input_ids=text[None, known:], past_key_values=past, use_cache=True)
        else:
            found = model(input_ids=text[None, -window:], use_cache=fits)
        # Models that keep their past in another form (state spaces) have none by this name.
        past, known = (getattr(found, "past_key_values", None), len(text)) if fits else (None, 0)
        logits: Tensor = found.logits[0, -1]
        return logits[:vocab_size]

    return next_logits


def write_config(config: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(config.to_json_string(use_diff=True), encoding="utf-8", newline="\n")
