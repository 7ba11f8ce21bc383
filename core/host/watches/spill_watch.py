"""Spill watch: reports a rank whose GPU memory has overflowed into the machine's (Windows), and the remedy.

NVIDIA's driver for Windows does not end a program whose card is full: it lets it use the machine's memory, over PCIe.
Nothing fails, and a step takes ten times as long.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.formatting import memory_size
from core.host.ranks import Rank, Ranks
from core.host.services import HostServices
from core.host.watches.watch import Watch
from core.machine.devices.gpu_counters import ProcessUse, spilled_bytes

log = logging.getLogger(__name__)

KIND: Final = "memory_spill"
# Readings in a row, one a second: loading a checkpoint or cuDNN's search may need more for a moment.
ENOUGH: Final = 5
_OVER: Final = 10


class SpillWatch(Watch):
    def __init__(self, services: HostServices, ranks: Ranks) -> None:
        self._emit = services.stream.emit
        self._ranks = ranks
        self._counts: dict[int, int] = {}
        self._spilling: dict[int, int] = {}

    def sampled(self, rows: Sequence[Mapping[str, Any]]) -> None:
        by_uuid = {row.get("uuid"): row for row in rows}
        for rank in self._ranks:
            row = by_uuid.get(rank.command.device.uuid)
            if row is None or not isinstance(row.get("rank_shared_bytes"), int):
                continue
            use = ProcessUse("", int(row.get("rank_bytes") or 0), row["rank_shared_bytes"])
            self._take(rank, spilled_bytes(use, row.get("memory_used_bytes"), row.get("memory_total_bytes")))

    def _take(self, rank: Rank, spilled: int) -> None:
        number, count = rank.number, self._counts.get(rank.number, 0)
        self._counts[number] = max(count, 0) + 1 if spilled else min(count, 0) - 1
        if number not in self._spilling and self._counts[number] >= ENOUGH:
            self._spilling[number] = spilled
            self._report(rank, spilled)
        elif number in self._spilling and self._counts[number] <= -_OVER:
            del self._spilling[number]
            if not self._spilling:
                self._emit("alert_over", kind=KIND, text="All ranks fit into the memory of their GPUs again.")

    def _report(self, rank: Rank, spilled: int) -> None:
        run = self._ranks.run
        batch = None if run.names_its_own_batch else run.batch.halved()
        log.warning("rank %d holds %d bytes of shared memory: its GPU is full", rank.number, spilled)
        answer: dict[str, Any] = {}
        if batch is None:
            step = "Stop the run and resume it with less in memory: shorter sequences, or a mode that shards."
        else:
            sizes = f"micro-batch {batch.micro} and accumulation {batch.accumulation}"
            step = f"Stop the run and resume it with {sizes}; the global batch stays {batch.global_}."
            answer = {"micro_batch": batch.micro, "grad_accum_steps": batch.accumulation}
        self._emit(
            "alert",
            kind=KIND,
            step=rank.step,
            ranks=sorted(self._spilling),
            spilled_bytes=spilled,
            title=f"{rank.device} is full and uses the computer's memory",
            cause=f"{memory_size(spilled)} of its process lie in the computer's memory, far from the GPU. "
            "Steps take many times longer.",
            next_step=step,
            **answer,
        )
