"""Memory as Windows counts it: what it may promise to programs (the commit limit), and what of that is left."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowsMemory:
    """In bytes.

    Attributes:
        physical: The machine's memory.
        commit_limit: Memory and page file.
        commit_free: What programs may still be promised.
    """

    physical: int
    commit_limit: int
    commit_free: int


def windows_memory() -> WindowsMemory | None:
    """The counts; None on other systems. Not psutil's swap_memory: it fails where performance counters are off."""
    if sys.platform != "win32":
        return None
    import ctypes

    # MEMORYSTATUSEX: two 32-bit fields (length, load), then seven of 64 bits: memory, of that free, commit limit, …
    status = (ctypes.c_uint64 * 8)()
    ctypes.cast(status, ctypes.POINTER(ctypes.c_uint32))[0] = ctypes.sizeof(status)
    if not ctypes.WinDLL("kernel32", use_last_error=True).GlobalMemoryStatusEx(ctypes.byref(status)):
        raise ctypes.WinError(ctypes.get_last_error())
    return WindowsMemory(int(status[1]), int(status[3]), int(status[4]))
