"""A CUDA tensor through an all-reduce on the CPU: in slices over pinned memory, copies beside the sums.

The card copies slice 2 out while the CPU sums slice 1; what is summed goes back while the next is being summed. All
copies are on a stream of their own, so kernels of the backward pass run on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

# One copy: long enough for the bus, short enough for copies and sums to overlap.
STAGE_BYTES: Final = 2 << 20
Stream: Final[Any] = torch.cuda.Stream  # torch's own are not typed
Event: Final[Any] = torch.cuda.Event


class CudaStaging:
    """Pinned memory and a stream for one device, used by one thread at a time.

    `reduce` sums a CPU tensor in place over all ranks: the tensor, the factor, the slice's number.
    """

    def __init__(self, device: torch.device, reduce: Callable[[Tensor, float, int], None]) -> None:
        self._device, self._reduce = device, reduce
        self.stream = Stream(device)
        self._pinned = torch.empty(0, dtype=torch.uint8)

    def sum(self, tensor: Tensor, factor: float, ready: torch.cuda.Event) -> None:
        """Replaces the tensor by the sum over all ranks of `factor` times theirs.

        The last copies back may still be under way on `stream` at return; record an event there, or wait for it.

        Args:
            tensor: Contiguous, on the device.
            factor: As in `SharedAllReduce.sum`.
            ready: Recorded behind what computes the tensor.
        """
        flat = tensor.detach().view(-1)
        pinned = self._room(flat)
        per = STAGE_BYTES // flat.element_size()
        places = [slice(start, min(flat.numel(), start + per)) for start in range(0, flat.numel(), per)]
        arrived = []
        with torch.cuda.device(self._device), torch.cuda.stream(self.stream):
            self.stream.wait_event(ready)
            for place in places:
                pinned[place].copy_(flat[place], non_blocking=True)
                event = Event()
                event.record(self.stream)
                arrived.append(event)
            for number, (place, event) in enumerate(zip(places, arrived, strict=True)):
                event.synchronize()
                self._reduce(pinned[place], factor, number)
                flat[place].copy_(pinned[place], non_blocking=True)

    def _room(self, flat: Tensor) -> Tensor:
        size = flat.numel() * flat.element_size()
        if self._pinned.numel() < size:
            self.stream.synchronize()  # the old room may still be read
            self._pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        return self._pinned[:size].view(flat.dtype)
