"""Which number format the forward pass runs in, and the loss scaling that fp16 needs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch

from core.errors import ConfigError

_DTYPES: Final = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """The forward pass's format on one device.

    Args:
        name: "auto", "fp32", "bf16" or "fp16"; auto is bf16 on a GPU that has it in hardware, else fp32.
        device: Where the model stands.

    Raises:
        ConfigError: bf16 was asked for on a GPU that does not have it.

    Attributes:
        name: What it came to, never "auto".
        scaler: Scales the loss for fp16; does nothing for the others.
    """

    def __init__(self, name: str, device: torch.device) -> None:
        has_bf16 = device.type != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
        if name == "auto":
            name = "bf16" if device.type == "cuda" and has_bf16 else "fp32"
        if name == "bf16" and not has_bf16:
            raise ConfigError(
                "precision",
                f"{torch.cuda.get_device_name(device)} has no bf16.",
                "Choose auto, fp32 or fp16 as precision.",
            )
        self.name = name
        self.scaler = torch.amp.GradScaler(device.type, enabled=name == "fp16")
        self._device = device

    def forward(self) -> AbstractContextManager[Any]:
        """The context for forward passes."""
        dtype = _DTYPES.get(self.name)
        if dtype is None:
            return nullcontext()
        return torch.autocast(self._device.type, dtype=dtype)
