"""`DeviceMonitor`: this machine's devices and their figures. Never raises, never waits long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.machine.devices.cpu import HostReader, cpu_slots
from core.machine.devices.device import Device, DeviceSample, HostSample
from core.machine.devices.driver_thread import DriverThread, GpuDriver
from core.machine.devices.gpu_counters import ProcessUse, with_use
from core.machine.devices.gpu_list import GpuList, drivers_here
from core.machine.process_reading import descendants

if sys.platform == "win32":
    from core.machine.devices.pdh import ProcessGpuUse

FIRST_LOOK_LIMIT_S: Final = 5.0
SAMPLE_LIMIT_S: Final = 1.0
HANG_S: Final = 3.0
# How often it is looked which processes a rank has started.
MEMBERS_EVERY_S: Final = 5.0
# A driver that is slow every time is given longer, up to this multiple of `hang_s`.
PATIENCE: Final = 4.0


class _Gpu:
    """One GPU and the thread that reads it."""

    def __init__(self, device: Device, driver: GpuDriver, hang_s: float, with_processes: bool) -> None:
        self.device = device
        self._hang_s = hang_s
        read = driver.reader(device, with_processes)
        self.thread: DriverThread[DeviceSample] = DriverThread(f"rankdeck-gpu-{device.index}", read)

    def sample(self, ticket: int, deadline: float) -> DeviceSample:
        thread, uuid = self.thread, self.device.uuid
        hang_s = max(self._hang_s, min(2 * thread.took_s, PATIENCE * self._hang_s))
        # Then there is no point in waiting for it again.
        hangs = thread.silent_for_s >= hang_s
        fresh = thread.wait(ticket, time.monotonic() if hangs else deadline)
        if thread.failure is not None:
            return DeviceSample(uuid, time.time(), error=f"cannot be read: {thread.failure}")
        silent_s = thread.silent_for_s
        if fresh or silent_s < hang_s:
            return thread.latest or DeviceSample(uuid, time.time())  # nothing is known yet
        return DeviceSample(uuid, time.time(), error=f"has not answered for {silent_s:.0f} s", is_unusable=True)


class DeviceMonitor:
    """Devices of this machine and their figures.

    Drivers are called only in threads of their own, one for each list and one for each GPU, because a driver in trouble
    may answer late or never: such a GPU says so in its sample and the others go on. Any thread may call; a GUI calls
    from a thread of its own all the same, since a call may take up to its time limit.

    Args:
        first_look_limit_s: Longest wait for the list of GPUs, the first time it is asked for.
        sample_limit_s: Longest wait for all GPUs' figures together.
        hang_s: A reading that takes longer is reported as a GPU that does not answer; up to then the reading before
            is shown.
        cpu_too: List CPU devices beside GPUs.
        with_processes: List the processes that compute on each GPU.
    """

    def __init__(
        self,
        *,
        cpu_too: bool = False,
        with_processes: bool = False,
        first_look_limit_s: float = FIRST_LOOK_LIMIT_S,
        sample_limit_s: float = SAMPLE_LIMIT_S,
        hang_s: float = HANG_S,
    ) -> None:
        self._use: DriverThread[dict[int, list[ProcessUse]]] | None = None
        if sys.platform == "win32":
            self._use = DriverThread("rankdeck-gpu-counters", ProcessGpuUse().read)
        self._roots: dict[str, int] = {}
        self._members: tuple[float, dict[str, tuple[int, ...]]] = (float("-inf"), {})
        self._cpu_too = cpu_too
        self._with_processes = with_processes
        self._hang_s = hang_s
        self._sample_limit_s = sample_limit_s
        self._lock = threading.RLock()
        self._host = HostReader()
        self._slots: list[Device] | None = None
        self._gpus: list[_Gpu] = []
        self._answers = 0
        self._closed = False
        self._list = GpuList(drivers_here(), first_look_limit_s)

    def __enter__(self) -> DeviceMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def devices(self) -> list[Device]:
        """The GPUs, or CPU devices where there is none (`problem` says why); then GPUs that are hidden."""
        gpus = [gpu.device for gpu in self._known_gpus() or []]
        return gpus + self._listed_slots(gpus) + [device for device, _ in self._list.gpus(hidden=True)]

    def cpu_slots(self) -> list[Device]:
        """Slots of the processor; they can be trained on beside GPUs too, when asked for by name."""
        with self._lock:
            if self._slots is None:
                self._slots = cpu_slots()
            return list(self._slots)

    def _listed_slots(self, gpus: Sequence[object]) -> list[Device]:
        return [] if gpus and not self._cpu_too else self.cpu_slots()

    def sample(self) -> list[DeviceSample]:
        """Read each of `devices` that is not hidden, in their order; then the other watched CPU devices."""
        gpus = self._known_gpus() or []
        deadline = time.monotonic() + self._sample_limit_s
        tickets = [gpu.thread.ask() for gpu in gpus]
        use_ticket = self._use.ask() if self._use is not None and gpus else 0
        samples = [gpu.sample(ticket, deadline) for gpu, ticket in zip(gpus, tickets, strict=True)]
        if self._use is not None and gpus:
            self._use.wait(use_ticket, deadline)
            samples = with_use(samples, self._use.latest or {}, self._rank_processes())
        slots = {slot.uuid: slot for slot in [*self._listed_slots(gpus), *self._host.watched_slots()]}
        host = self._host.host() if slots else None
        return samples + [self._host.slot(slot, host) for slot in slots.values() if host is not None]

    def host(self) -> HostSample:
        return self._host.host()

    def watch(self, processes: Mapping[str, int]) -> None:
        """Set the processes that train on devices (device uuid → pid), so that a slot shows its own figures."""
        self._host.watch(processes)
        with self._lock:
            self._roots, self._members = dict(processes), (float("-inf"), {})

    def _rank_processes(self) -> dict[str, tuple[int, ...]]:
        """The ranks on GPUs with all their children: a virtual environment's python.exe only starts the real one."""
        with self._lock:
            looked_at, members = self._members
            now = time.monotonic()
            if now >= looked_at + MEMBERS_EVERY_S:
                gpus = {uuid: pid for uuid, pid in self._roots.items() if not uuid.startswith("cpu:")}
                members = {uuid: (pid, *(child.pid for child in descendants(pid))) for uuid, pid in gpus.items()}
                self._members = (now, members)
            return members

    @property
    def problem(self) -> str | None:
        """The reason for missing GPUs, in a sentence; None when all is well."""
        self._known_gpus()
        return self._list.problem

    @property
    def driver(self) -> str | None:
        self._known_gpus()
        return self._list.driver("NVIDIA")

    def close(self, limit_s: float = 2.0) -> None:
        """End the threads; one that hangs in the driver is not waited for: it ends with the process."""
        with self._lock:
            self._closed = True
            threads: list[DriverThread[Any]] = [*self._list.threads, *(gpu.thread for gpu in self._gpus)]
            if self._use is not None:
                threads.append(self._use)
            for thread in threads:
                thread.end()
            deadline = time.monotonic() + limit_s
            for thread in threads:
                thread.close(time.monotonic() if thread.silent_for_s >= self._hang_s else deadline)

    def _known_gpus(self) -> list[_Gpu] | None:
        """The GPUs; None while no driver has answered yet."""
        with self._lock:
            answers = self._list.answers()
            if answers > self._answers:
                self._take_list(answers)
            return self._gpus if self._answers else None

    def _take_list(self, answers: int) -> None:
        """Start to read GPUs that are new in the list: another driver has answered."""
        before = {gpu.device.uuid: gpu for gpu in self._gpus}
        now = [] if self._closed else self._list.gpus(hidden=False)
        self._gpus = [
            before.get(device.uuid) or _Gpu(device, maker, self._hang_s, self._with_processes) for device, maker in now
        ]
        for gpu, (device, _) in zip(self._gpus, now, strict=True):
            # It is counted otherwise once a driver before its own has answered.
            gpu.device = device
        self._answers = max(answers, self._answers)
