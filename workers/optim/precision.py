"""Precision: the number format of the forward pass, and the loss scaling that fp16 needs.

Weights, gradients and the optimizer's state stay in fp32; autocast converts weights as they are used. fp16's loss is
multiplied by a scale that is halved when a gradient overflows, and doubled after 2000 steps without (Micikevicius et
al., arXiv 1710.03740). Gradients are all-reduced before they are looked at, so an overflow on any rank skips the
update on all, and every rank's scale is the same. Such a step counts: its samples are taken and the learning rate's
schedule continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from core.errors import ConfigError


def has_bf16(device: torch.device) -> bool:
    """Whether a device computes in bf16 in hardware; a CPU always can, some only slowly."""
    return device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)


def agreed(name: str, device: torch.device, ranks: int, total: Callable[[Sequence[float]], list[float]]) -> str:
    """The format for "auto", alike on all ranks of a replica group: bf16 if every GPU has it, else fp32.

    `total` sums numbers over the group's `ranks` (`strategies.base.Strategy.total`); every rank calls it.
    """
    if name != "auto":
        return name
    able = 1.0 if device.type == "cuda" and has_bf16(device) else 0.0
    return "bf16" if total([able])[0] >= ranks else "fp32"


class Precision:
    """The forward pass's format on one device; raises `ConfigError` for bf16 on a GPU that does not have it.

    Attributes:
        name: "fp32", "bf16" or "fp16".
        dtype: The format that is converted to; None for fp32.
        scaler: Scales the loss for fp16; does nothing for the others.
    """

    def __init__(self, name: str, device: torch.device) -> None:
        if name == "bf16" and not has_bf16(device):
            raise ConfigError(
                "precision",
                f"{torch.cuda.get_device_name(device)} has no bf16.",
                "Choose auto, fp32 or fp16 as precision.",
            )
        self.name = name
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(name)
        self.scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")
        self._device = device

    def forward(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.dtype is None else torch.autocast(self._device.type, dtype=self.dtype)

    def loss_scale(self) -> Tensor | None:
        """The scale after the newest step, a tensor of its own without dimensions; None without scaling.

        Reading `scaler.get_scale()` would make a GPU wait at every step; this does not.
        """
        if not self.scaler.is_enabled():
            return None
        scaler: Any = self.scaler
        scale: Tensor | None = scaler._get_scale_async()
        return None if scale is None else scale.detach().clone()
