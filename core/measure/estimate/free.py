"""Free memory, Windows' commit charge, disk space and GPU memory of this machine, and the verdict on a need."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import psutil

from core.machine.devices import DeviceSample
from core.machine.platform import windows_memory

Verdict = Literal["fits", "tight", "too_large", "unknown"]

# Share of what is free up to which a need fits: an estimate is right within a tenth.
COMFORTABLE: Final = 0.85


@dataclass(frozen=True, slots=True)
class Free:
    """Free memory and disk space, in bytes; None is not known.

    Attributes:
        commit: Windows' commit charge: memory and page file. None elsewhere.
        disk: Where the run's folder will be.
        devices: Of each GPU's memory, by UUID; a card that drives the screen keeps some for it.
    """

    ram: int | None = None
    commit: int | None = None
    disk: int | None = None
    devices: Mapping[str, int] = field(default_factory=dict)


def free_now(samples: Sequence[DeviceSample], runs_dir: Path | None) -> Free:
    """Ask the system for free memory and disk space.

    Args:
        samples: Of the devices, as a `DeviceMonitor` took them.
        runs_dir: The run's parent folder; it need not exist yet. None: no disk is asked, which takes a while.
    """
    gpus = {
        sample.uuid: max(0, sample.memory_total_bytes - sample.memory_used_bytes - sample.screen_reserve_bytes)
        for sample in samples
        if sample.memory_total_bytes is not None and sample.memory_used_bytes is not None
    }
    places = () if runs_dir is None else (runs_dir.absolute(), *runs_dir.absolute().parents)
    existing = next((path for path in places if path.exists()), None)
    disk = None if existing is None else shutil.disk_usage(existing).free
    windows = windows_memory()
    commit = None if windows is None else windows.commit_free
    return Free(psutil.virtual_memory().available, commit, disk, gpus)


def verdict_on(need: int, free: int | None, *, complete: bool) -> Verdict:
    """Judge a need; one that is not `complete` can only be known to be too large."""
    if free is None:
        return "unknown"
    if need > free:
        return "too_large"
    if not complete:
        return "unknown"
    return "fits" if need <= COMFORTABLE * free else "tight"
