"""Gives memory that is not used any more back to the system, once: a CPU rank's heap keeps it otherwise."""

from __future__ import annotations

import ctypes
import sys


def give_back_spare_memory() -> None:
    """Hands free pages of the C library's heaps to the system; does nothing where it has no call for that.

    A CPU rank keeps what it frees, since each step asks for it again (docs/decisions/0025). What making tokens took
    lies in the heaps of threads that are idle from then on: 220 MiB for a megabyte of text.
    """
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; musl has none
    if trim is not None:
        trim(0)
