"""Resources of this process: memory in mapped files, GPU memory beyond its tensors, and processor time."""

from __future__ import annotations

import bisect
import sys
import time
from typing import Final

import psutil
import torch
from torch import nn

from core.machine.devices.gpu_list import OwnGpu

# Another program that starts meanwhile on the same card would count as well.
_MOST_CONTEXT: Final = 2 << 30
# Windows charges a whole tick of its clock to the process that computes as it ticks: work of a few milliseconds counts
# as one, or as nothing. Elsewhere processor time is exact.
TICK_S: Final = 1 / 64 if sys.platform == "win32" else 0.0
_LEAST_TICKS: Final = 10


def rss_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def mapped_bytes(model: nn.Module) -> int:
    """Count a model's parameters in mapped files, as opened checkpoints are, in bytes; 0 where the system hides it."""
    try:
        maps = psutil.Process().memory_maps(grouped=False)
    except (AttributeError, psutil.Error, OSError):  # macOS has none
        return 0
    files = sorted(_addresses(region) for region in maps if region.path and not region.path.startswith("["))
    starts = [start for start, _ in files]
    found = 0
    for parameter in model.parameters():
        before = bisect.bisect_right(starts, parameter.data_ptr()) - 1
        if parameter.device.type == "cpu" and before >= 0 and parameter.data_ptr() < files[before][1]:
            found += parameter.nbytes
    return found


def _addresses(region: object) -> tuple[int, int]:
    """Parse first address and end of a region: "55d8-55d9" on Linux; on Windows the first alone, of size `rss`."""
    first, _, end = str(region.addr).partition("-")  # type: ignore[attr-defined]  # psutil's tuples differ by system
    start = int(first, 16)
    return start, int(end, 16) if end else start + int(region.rss)  # type: ignore[attr-defined]


class GpuMemory:
    """The memory of one GPU, as its driver and PyTorch count it. To be made before this process first uses CUDA."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._gpu = OwnGpu(is_amd=torch.version.hip is not None)
        self._before = self._gpu.used_bytes()

    @property
    def free_bytes(self) -> int:
        free, _ = torch.cuda.mem_get_info(self._device)
        return int(free)

    def restart_peak(self) -> None:
        """Let `peak_bytes` count from now on."""
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(self._device)

    def peak_bytes(self) -> int:
        return torch.cuda.max_memory_reserved(self._device)

    def context_bytes(self) -> int:
        """Memory that the driver holds for this process besides that; 0 where it does not say."""
        used = self._gpu.used_bytes()
        if used is None or self._before is None:
            return 0
        torch.cuda.synchronize(self._device)
        return min(_MOST_CONTEXT, max(0, used - self._before - torch.cuda.memory_reserved(self._device)))


class ProcessorTimer:
    """Times the work of this process from now on, whatever else computes meanwhile; `threads` share it."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._began, self._used_s = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        """Seconds that the work would have taken alone; work too short for the ticks is timed by the wall clock."""
        used_s = time.process_time() - self._used_s
        if used_s < _LEAST_TICKS * TICK_S:
            return time.perf_counter() - self._began
        return used_s / self._threads
