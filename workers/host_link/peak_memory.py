"""Peak memory of this process and of its device, as the system and PyTorch count it; reported when it has grown."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from workers.host_link.reporter import Reporter

if TYPE_CHECKING:
    import torch

EVENT: Final = "memory"
# Steps from one look to the next; one look takes less than 0.1 ms.
LOOK_EVERY: Final = 100
_GROWN: Final = 1.01


def peak_rss_bytes() -> int:
    if sys.platform == "linux":
        # Not `ru_maxrss`: that begins with the peak of the program that started this one.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) << 10
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def restart_peak() -> None:
    """Let `peak_rss_bytes` count from now on, where the system can do that."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a kernel may forbid it
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory(device: torch.device | None) -> dict[str, int]:
    """The peaks: `rss_bytes`, on Windows `commit_bytes`, of a GPU `allocated_bytes` and `reserved_bytes`."""
    found = {"rss_bytes": peak_rss_bytes()}
    if sys.platform == "win32":
        found["commit_bytes"] = int(psutil.Process().memory_info().peak_pagefile)
    if device is not None and device.type == "cuda":
        import torch

        found["allocated_bytes"] = torch.cuda.max_memory_allocated(device)
        found["reserved_bytes"] = torch.cuda.max_memory_reserved(device)
    return found


class PeakMemoryReport:
    """Reports this rank's peaks as an event, when one has grown by more than a hundredth."""

    def __init__(self, reporter: Reporter, device: torch.device) -> None:
        self._reporter = reporter
        self._device = device
        self._reported: dict[str, int] = {}

    def look(self) -> None:
        found = peak_memory(self._device)
        if any(value > _GROWN * self._reported.get(name, 0) for name, value in found.items()):
            self._reported = found
            self._reporter.event(EVENT, **found)
