"""The recipe's options as Python types; `recipe.toml` has their defaults, limits and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Options:
    """The fields of `recipe.toml`, compared when the recipe is found."""

    n_layer: int
    n_head: int
    n_embd: int
    dropout: float
    bias: bool
    tokenizer: Literal["byte", "bpe"]
    vocab_size: int
    text_column: str
    max_bad_rows: str
    allow_download: bool
    val_fraction: float
    weight_decay: float
    beta1: float
    beta2: float
    warmup_steps: int
    min_lr_ratio: float
    clip_norm: float
    grad_checkpointing: bool
    sample_tokens: int
    sample_prompt: str
    sample_temperature: float
