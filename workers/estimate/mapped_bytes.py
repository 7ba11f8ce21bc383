"""Finds the weights of a model that lie in a file which is mapped into memory, as opened checkpoints do."""

from __future__ import annotations

import bisect

import psutil
from torch import nn


def mapped_bytes(model: nn.Module) -> int:
    """Bytes of a model's parameters that lie in mapped files; 0 where the system does not say what is mapped."""
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
    """First address and end of a region: "55d8-55d9" on Linux; on Windows the first alone, whose size is `rss`."""
    first, _, end = str(region.addr).partition("-")  # type: ignore[attr-defined]  # psutil's tuples differ by system
    start = int(first, 16)
    return start, int(end, 16) if end else start + int(region.rss)  # type: ignore[attr-defined]
