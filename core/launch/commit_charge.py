"""Commit charge: how many ranks Windows can promise memory to. Pure.

Windows promises each process all memory that it reserves, used or not, up to memory and page file together. Past that
a DLL does not load: "[WinError 1455] The paging file is too small", after a minute of imports, in the last rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.errors import PreflightError
from core.formatting import memory_size
from core.machine.devices.device import Device

# PyTorch's CPU build and a model of 3.3 million parameters: 539 MB at its peak, measured under Linux.
CPU_RANK_BYTES: Final = 600 << 20
# What loading the DLLs of a CUDA build takes by reports (ultralytics/yolov3#1643): not measured here. A model's memory
# comes on top of it, so this is the least that a rank needs.
CUDA_RANK_BYTES: Final = 2500 << 20
# For the window, the host and what else runs.
KEPT_FREE_BYTES: Final = 1 << 30
NEXT_STEP: Final = "Close other programs, or let Windows manage the page file's size"


def rank_commit_bytes(device: Device, measured: int | None = None) -> int:
    """Return the least that a rank commits; `measured`: bytes of a bare CPU rank on this machine."""
    return max(measured or 0, CUDA_RANK_BYTES) if device.kind == "cuda" else measured or CPU_RANK_BYTES


def ranks_that_fit(devices: Sequence[Device], free_bytes: int | None, measured: int | None = None) -> int:
    """Return how many of the first devices have room for a rank; all if no limit is known."""
    if free_bytes is None:
        return len(devices)
    left, count = free_bytes - KEPT_FREE_BYTES, 0
    for device in devices:
        left -= rank_commit_bytes(device, measured)
        if left < 0:
            break
        count += 1
    return count


def capped_devices(devices: tuple[Device, ...], free_bytes: int | None) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """Leave out devices that were found, not chosen, and lack memory; also returns a sentence about them.

    At least one is left: `check_commit` refuses it if it does not fit.
    """
    fit = max(1, ranks_that_fit(devices, free_bytes))
    if free_bytes is None or fit >= len(devices):
        return devices, ()
    left, needed = memory_size(free_bytes), memory_size(rank_commit_bytes(devices[fit]))
    note = (
        f"The run takes {fit} of {len(devices)} devices: Windows has {left} of memory and page file left for programs, "
        f"and each process needs at least {needed}. {NEXT_STEP}."
    )
    return devices[:fit], (note,)


def check_commit(devices: Sequence[Device], free_bytes: int | None, measured: int | None = None) -> None:
    """Refuse more ranks than Windows can promise memory to.

    Args:
        devices: One rank each.
        free_bytes: None if no limit is known, as on other systems.
        measured: Bytes of a bare CPU rank on this machine, if known.

    Raises:
        PreflightError: Says how many there is room for.
    """
    fit = ranks_that_fit(devices, free_bytes, measured)
    if free_bytes is None or fit >= len(devices):
        return
    needed = memory_size(sum(rank_commit_bytes(device, measured) for device in devices))
    left = memory_size(free_bytes)
    if fit:
        plural = "s" if fit > 1 else ""
        room, step = f"there is room for {fit} of them", f"{NEXT_STEP}, or choose {fit} device{plural}."
    else:
        room, step = "there is room for none", f"{NEXT_STEP}."
    count = len(devices)
    what = f"{count} processes need" if count > 1 else "A process needs"
    raise PreflightError(
        f"{what} at least {needed} of memory and page file, and Windows has {left} left for programs: {room}.",
        step,
        title="Too little memory for the processes",
        option=f"--devices cpux{fit}" if fit and devices[0].kind == "cpu" else "",
    )
