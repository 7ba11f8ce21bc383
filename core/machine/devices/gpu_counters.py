"""GPU memory of processes, by Windows' own counters: there NVML does not know what a process holds. Pure.

Under WDDM Windows gives out a card's memory, not NVIDIA's driver, so it alone can say. Its instances are named
``pid_1234_luid_0x00000000_0x0000D2A1_phys_0``: a process, and an adapter by its LUID, which is another one after each
start of the machine.
https://devblogs.microsoft.com/directx/gpus-in-the-task-manager/
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.machine.devices.device import DeviceProcess, DeviceSample

DEDICATED: Final = r"\GPU Process Memory(*)\Dedicated Usage"
SHARED: Final = r"\GPU Process Memory(*)\Shared Usage"
COUNTERS: Final = (DEDICATED, SHARED)
# By counter and instance.
Readings = Mapping[str, Mapping[str, float]]

_INSTANCE: Final = re.compile(
    r"pid_(?P<pid>\d+)_luid_(?P<luid>0x[0-9a-f]+_0x[0-9a-f]+)_phys_\d+(?:#\d+)?", re.IGNORECASE
)
# Pinned buffers for all-reduce and data loading lie in shared memory too; they take less.
NOTABLE_SHARED_BYTES: Final = 512 << 20
# A card that is emptier has no reason to spill: what is shared there was asked for.
_FULL: Final = 0.85


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """The memory of one process, or of several together, on one adapter.

    Attributes:
        adapter: Its LUID as text.
        dedicated_bytes: In the card's own memory.
        shared_bytes: In the machine's memory: overflow, and buffers that both use.
    """

    adapter: str
    dedicated_bytes: int = 0
    shared_bytes: int = 0


def parse_use(readings: Readings) -> dict[int, list[ProcessUse]]:
    """The use of each process, by pid, the adapter with most of its memory first."""
    found: dict[tuple[int, str], dict[str, float]] = {}
    for counter in COUNTERS:
        for name, value in readings.get(counter, {}).items():
            match = _INSTANCE.fullmatch(name)
            if match is None:
                continue
            values = found.setdefault((int(match["pid"]), match["luid"].lower()), {})
            values[counter] = values.get(counter, 0.0) + value
    uses: dict[int, list[ProcessUse]] = {}
    for (pid, luid), values in found.items():
        use = ProcessUse(luid, int(values.get(DEDICATED, 0)), int(values.get(SHARED, 0)))
        uses.setdefault(pid, []).append(use)
    for pid in uses:
        uses[pid].sort(key=lambda use: -use.dedicated_bytes)
    return uses


def use_on_main_adapter(uses: Mapping[int, list[ProcessUse]], pids: Collection[int]) -> ProcessUse | None:
    """Sum the use of some processes (a rank and its children) on the adapter where they hold most.

    A rank trains on one card; a little on another, such as the one that drives the screen, is not its model. None
    where Windows counts nothing for them.
    """
    own = [use for pid in pids for use in uses.get(pid, ())]
    if not own:
        return None
    main = max({use.adapter for use in own}, key=lambda adapter: _sum(own, adapter))
    mine = [use for use in own if use.adapter == main]
    return ProcessUse(main, sum(use.dedicated_bytes for use in mine), sum(use.shared_bytes for use in mine))


def spilled_bytes(use: ProcessUse, used_bytes: int | None, total_bytes: int | None) -> int:
    """A rank's bytes in the machine's memory because its card is full; 0 while nothing is wrong.

    NVIDIA's driver gives a program shared memory rather than an error once a card is full ("CUDA sysmem fallback"),
    and each step then takes many times as long.

    Args:
        used_bytes: Of the card's memory, by NVML.
    """
    if use.shared_bytes < NOTABLE_SHARED_BYTES:
        return 0
    if used_bytes is not None and total_bytes and used_bytes < _FULL * total_bytes:
        return 0
    return use.shared_bytes


def with_use(
    samples: Sequence[DeviceSample], uses: Mapping[int, list[ProcessUse]], ranks: Mapping[str, Collection[int]]
) -> list[DeviceSample]:
    """Add Windows' figures of processes to readings of GPUs.

    Args:
        ranks: The processes of the rank on a device, by UUID.
    """
    if not uses:
        return list(samples)
    cards: dict[int, int] = {}
    for sample in samples:
        for process in sample.processes:
            cards[process.pid] = cards.get(process.pid, 0) + 1
    found = []
    for sample in samples:
        processes = [_with_use(process, uses, cards[process.pid]) for process in sample.processes]
        processes.sort(key=lambda process: -(process.memory_bytes or 0))
        rank = use_on_main_adapter(uses, ranks.get(sample.uuid, ()))
        found.append(
            replace(
                sample,
                processes=tuple(processes),
                rank_bytes=None if rank is None else rank.dedicated_bytes,
                rank_shared_bytes=None if rank is None else rank.shared_bytes,
            )
        )
    return found


def _with_use(process: DeviceProcess, uses: Mapping[int, list[ProcessUse]], cards: int) -> DeviceProcess:
    """Nothing tells the card of a LUID, so a process on several cards is left as it is."""
    if process.memory_bytes is not None or cards != 1 or process.pid not in uses:
        return process
    use = uses[process.pid][0]
    return replace(process, memory_bytes=use.dedicated_bytes, shared_bytes=use.shared_bytes)


def _sum(uses: Iterable[ProcessUse], adapter: str) -> int:
    return sum(use.dedicated_bytes + use.shared_bytes for use in uses if use.adapter == adapter)
