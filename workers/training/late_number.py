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

    def __init__(self, device: torch.device) -> None:
        on_gpu = device.type == "cuda"
        event: Any = torch.cuda.Event  # torch's own is not typed
        self._value = torch.zeros((), dtype=torch.float64, pin_memory=on_gpu)  # holds every other format's numbers
        self._copied: Any = event() if on_gpu else None

    def put(self, value: Tensor) -> None:
        """Sends a number of the device on its way; the one before must have been read."""
        self._value.copy_(value, non_blocking=True)
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(value.device))

    def read(self) -> float:
        """The number; waits until it is there."""
        if self._copied is not None:
            self._copied.synchronize()
        return float(self._value)
