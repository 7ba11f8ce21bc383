"""Optimization: AdamW, weight decay on matrices only, linear warm-up then a cosine, clipping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from core.config.lr_schedule import cosine


@dataclass(frozen=True, slots=True)
class Optimization:
    """The update rule of a run; the peak learning rate is `RunConfig.lr`.

    Attributes:
        kind: The optimizer's class.
        options: Its own arguments (betas, eps, momentum, …).
        weight_decay: For parameters of two dimensions or more; biases and norms get none.
        warmup_steps: The learning rate rises from near 0 over this many steps.
        min_lr_ratio: The cosine ends at this share of the peak; 1 keeps the rate constant.
        clip_norm: Gradients longer than this are shortened to it; 0 never clips.
    """

    kind: Callable[..., Optimizer] = AdamW
    options: Mapping[str, Any] = field(default_factory=dict)
    weight_decay: float = 0.0
    warmup_steps: int = 0
    min_lr_ratio: float = 1.0
    clip_norm: float = 0.0

    def lr(self, step: float, total_steps: float, peak: float) -> float:
        """The learning rate of step number `step`: `core.config.lr_schedule.cosine`."""
        return cosine(step, total_steps, self.warmup_steps, self.min_lr_ratio, peak)

    def lr_curve(self, place: float, length: float, warms_up: bool) -> float:
        return (self if warms_up else replace(self, warmup_steps=0)).lr(place, length, 1.0)

    @property
    def kind_name(self) -> str:
        """The optimizer's name; state of one kind means nothing to another."""
        return getattr(self.kind, "__name__", str(self.kind))

    def groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """`model`'s trainable parameters in groups, always in the same order: their numbers in it are their names in a
        checkpoint's optimizer state.
        """
        parameters = [p for p in model.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": self.weight_decay},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        return [group for group in groups if group["params"]]

    def arguments(self, model: nn.Module, lr: float) -> dict[str, Any]:
        """Keyword arguments of `kind` besides the groups."""
        arguments = {"lr": lr, **self.options}
        if self.kind is AdamW:
            # One kernel for all parameters; on the CPU too, where it is about a tenth of a step faster.
            arguments.setdefault("fused", all(torch.is_floating_point(p) for p in model.parameters()))
        return arguments

    def optimizer(self, model: nn.Module, lr: float) -> Optimizer:
        return self.kind(self.groups(model), **self.arguments(model, lr))
