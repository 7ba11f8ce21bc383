"""`GpuMemory`: what a process takes of its GPU beyond its tensors: the CUDA context, and gaps that PyTorch keeps."""

from __future__ import annotations

from typing import Final

import torch

from core.machine.devices.own_gpu import OwnGpu

_MOST_CONTEXT: Final = 2 << 30
"""Another program that starts meanwhile on the same card would count as well."""


class GpuMemory:
    """The memory of one GPU, as its driver and PyTorch count it. To be made before this process first uses CUDA."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._gpu = OwnGpu(is_amd=torch.version.hip is not None)
        self._before = self._gpu.used_bytes()

    @property
    def free_bytes(self) -> int:
        """What no process has."""
        free, _ = torch.cuda.mem_get_info(self._device)
        return int(free)

    def restart_peak(self) -> None:
        """Lets `peak_bytes` count from now on."""
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(self._device)

    def peak_bytes(self) -> int:
        """The most that PyTorch has reserved."""
        return torch.cuda.max_memory_reserved(self._device)

    def context_bytes(self) -> int:
        """What the driver holds for this process besides that; 0 where it does not say."""
        used = self._gpu.used_bytes()
        if used is None or self._before is None:
            return 0
        torch.cuda.synchronize(self._device)
        return min(_MOST_CONTEXT, max(0, used - self._before - torch.cuda.memory_reserved(self._device)))
