"""The recipe's options as Python types; `recipe.toml` has their defaults, limits and meaning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The fields of `recipe.toml`, compared when the recipe is found."""

    environment: str
    hidden: int
    passes: int
    num_episodes: int
    discount: float
    trace: float
    reward_scale: float
    clip: float
    value_clip: float
    value_weight: float
    entropy_weight: float
    kl_target: float
    clip_norm: float
    warmup_steps: int
    min_lr_ratio: float
    eval_episodes: int
    sampled_evaluation: bool
    max_episode_steps: int
    hide: str
    environment_arguments: str
    price_column: str
    fee: float
    window: int
    trading_steps: int
    allow_short: bool
    val_fraction: float
    max_gap: float
    max_bad_rows: float
