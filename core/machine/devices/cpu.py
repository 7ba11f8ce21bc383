"""The processor as devices: slots to train on where there is no GPU, and the machine's own figures."""

from __future__ import annotations

import contextlib
import platform
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

from core.machine.devices.device import Device, DeviceSample, HostSample
from core.machine.devices.process_trees import ProcessTrees
from core.machine.platform import physical_cores

MAX_SLOTS: Final = 8
# Offered even on one core: two ranks show whether a set-up works, if slowly.
MIN_SLOTS: Final = 2


def cpu_slots(count: int | None = None) -> list[Device]:
    """Slots of the processor, one rank each; by default one for each physical core, 2 at least and 8 at most."""
    if count is None:
        count = min(MAX_SLOTS, max(MIN_SLOTS, physical_cores()))
    name, memory = processor_name(), psutil.virtual_memory().total
    return [Device(f"cpu:{slot}", "cpu", slot, f"CPU {slot} ({name})", memory) for slot in range(count)]


def processor_name() -> str:
    found = ""
    with contextlib.suppress(OSError):
        found = _processor_name()
    return " ".join((found or platform.machine() or "unknown").split())


if sys.platform == "win32":

    def _processor_name() -> str:
        import winreg

        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0") as key:
            return str(winreg.QueryValueEx(key, "ProcessorNameString")[0])

else:

    def _processor_name() -> str:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line.partition(":")[2] for line in lines if line.startswith("model name")), "")


class HostReader:
    """Reads the machine's processor and memory, and those of processes that train on its slots.

    Shares of time are measured from one reading to the next, so the first has none. Any thread may read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cores = physical_cores()
        self._busy_before = _busy_and_total()
        self._percent: float | None = None
        self._trees = ProcessTrees({})
        self._watched: list[Device] = []

    def watch(self, processes: Mapping[str, int]) -> None:
        """Set the processes that train on slots: device uuid → pid."""
        trees = ProcessTrees(processes)
        numbers = sorted(int(uuid[4:]) for uuid in trees.keys if uuid[:4] == "cpu:" and uuid[4:].isdecimal())
        # Now, not at every sample: it asks for the model's name.
        slots = cpu_slots(numbers[-1] + 1) if numbers else []
        with self._lock:
            self._trees, self._watched = trees, [slots[number] for number in numbers]

    def watched_slots(self) -> list[Device]:
        with self._lock:
            return list(self._watched)

    def host(self) -> HostSample:
        memory = psutil.virtual_memory()
        return HostSample(time.time(), self._cpu_percent(), memory.total - memory.available, memory.total)

    def slot(self, device: Device, host: HostSample) -> DeviceSample:
        """Read a slot: the process that trains on it with all its children, or the machine when none does.

        It is fully busy when it uses the slot's share of the cores: the rest belongs to other slots.
        """
        with self._lock:
            trees = self._trees
            if device.uuid not in trees.keys:
                return DeviceSample(
                    device.uuid,
                    host.ts,
                    utilization_percent=host.cpu_percent,
                    memory_used_bytes=host.memory_used_bytes,
                    memory_total_bytes=host.memory_total_bytes,
                    is_whole_machine=True,
                )
            share_of_cores = self._cores / len(trees.keys)
            try:
                percent, used = trees.read(device.uuid)
            except psutil.Error:
                return DeviceSample(device.uuid, host.ts, error="its process has ended")
        return DeviceSample(
            device.uuid,
            host.ts,
            utilization_percent=min(100.0, percent / share_of_cores),
            memory_used_bytes=used,
            memory_total_bytes=host.memory_total_bytes,
        )

    def _cpu_percent(self) -> float | None:
        # Not psutil.cpu_percent(): that keeps one "before" for the whole process, and other code may call it.
        with self._lock:
            (busy, total), (busy_before, total_before) = _busy_and_total(), self._busy_before
            # Less is a clock tick or two and says nothing: the last figure stands.
            if total - total_before >= 0.05:
                share = (busy - busy_before) / (total - total_before)
                self._busy_before = busy, total
                self._percent = 100.0 * max(0.0, min(1.0, share))
            return self._percent


def _busy_and_total() -> tuple[float, float]:
    times = psutil.cpu_times()
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)  # counted in user already
    return total - times.idle - getattr(times, "iowait", 0.0), total
