"""`LateNumber`: a number that a device computes, read later, when there is nothing to wait for any more."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class LateNumber:
    """One number at a time on its way from a device.

    `Tensor.item` waits for all that is queued on a GPU, also for what was queued after the number. A copy into pinned
    memory with an event behind it is there as soon as the number is.
    """

    def __init__(self) -> None:
        self._value = torch.zeros(())
        self._copied: Any = None

    def put(self, value: Tensor) -> None:
        """Sends a number on its way; the one before must have been read."""
        on_gpu = value.device.type == "cuda"
        if (on_gpu and self._copied is None) or self._value.dtype != value.dtype:
            self._value = torch.zeros((), dtype=value.dtype, pin_memory=on_gpu)
        self._value.copy_(value, non_blocking=True)
        if on_gpu:
            event: Any = torch.cuda.Event  # torch's own is not typed
            self._copied = self._copied or event()
            self._copied.record(torch.cuda.current_stream(value.device))

    def read(self) -> float:
        """The number; waits until it is there."""
        if self._copied is not None:
            self._copied.synchronize()
        return float(self._value)
