"""The machine's devices and their last minutes, read once a second in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from app.threads.bridge import Feed, Send
from core.run_folder.device_users import DeviceUsers

if TYPE_CHECKING:
    from core.machine.devices import Device, DeviceSample
    from core.machine.devices.monitor import DeviceMonitor
    from core.machine.platform import Platform
    from core.processes.identity import ProcessId

SAMPLE_S: Final = 1.0
GRACE_S: Final = 0.04


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One reading of all devices.

    Attributes:
        problem: The reason why no GPUs are seen (no driver …); None if nothing is wrong.
        no_cuda: The reason why this PyTorch can train on no GPU; None if it can.
        cuda_build: As `Platform.gpu_build`.
        driver: The NVIDIA driver's version; None without one.
    """

    devices: tuple[Device, ...]
    samples: tuple[DeviceSample, ...]
    problem: str | None
    no_cuda: str | None = None
    cuda_build: str | None = ""
    driver: str | None = None


class DeviceTable(Feed):
    """The devices of this machine, kept current, and their figures.

    Signals:
        devices_changed: Devices came or went, or `problem` changed.
        sampled: New figures of the devices (`DeviceSample`s), once a second.
    """

    devices_changed = Signal()
    sampled = Signal(object)

    def __init__(self, make_monitor: Callable[[Platform], DeviceMonitor], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.devices: list[Device] = []
        self.problem: str | None = None
        self.no_cuda: str | None = None
        self.cuda_build: str | None = ""
        self.driver: str | None = None
        self.is_known = False
        self._make_monitor = make_monitor
        self._platform_changed = threading.Event()
        self._hosts: Mapping[ProcessId, str] = {}

    def look_again(self) -> None:
        """Find out again which PyTorch is installed, at the next reading."""
        self._platform_changed.set()

    def set_hosts(self, hosts: Mapping[ProcessId, str]) -> None:
        """Take over the hosts of live runs, so that their processes are named by their runs."""
        self._hosts = hosts

    @property
    def has_live_runs(self) -> bool:
        return bool(self._hosts)

    def open(self) -> None:
        make_monitor = self._make_monitor

        def work(stopping: threading.Event, send: Send) -> None:
            from core.machine.platform import this_platform

            platform = this_platform()
            monitor, users = make_monitor(platform), DeviceUsers()
            try:
                while not stopping.is_set():
                    if self._platform_changed.is_set():
                        self._platform_changed.clear()
                        platform = this_platform()
                    send(_read(monitor, platform, users, self._hosts))
                    stopping.wait(SAMPLE_S)
            finally:
                monitor.close()

        self._start("devices", work)

    def close(self, *, wait: bool = True) -> None:
        """End the thread; one that hangs in a driver is not waited for: nothing is lost with it."""
        super().close(wait=False)
        if wait:
            for worker in self._leaving:
                worker.join(GRACE_S)

    def _on_item(self, item: object) -> None:
        if not isinstance(item, DeviceReading):
            return
        shown = (self.devices, self.problem, self.no_cuda, self.cuda_build)
        changed = not self.is_known or (list(item.devices), item.problem, item.no_cuda, item.cuda_build) != shown
        self.is_known = True
        self.devices, self.problem, self.no_cuda = list(item.devices), item.problem, item.no_cuda
        self.cuda_build, self.driver = item.cuda_build, item.driver
        if changed:
            self.devices_changed.emit()
        self.sampled.emit(item.samples)


def monitor_for(_platform: Platform) -> DeviceMonitor:
    # Here, in its thread: the window opens without it.
    from core.machine.devices.monitor import DeviceMonitor

    return DeviceMonitor(cpu_too=True, with_processes=True)


def _read(
    monitor: DeviceMonitor, platform: Platform, users: DeviceUsers, hosts: Mapping[ProcessId, str]
) -> DeviceReading:
    from core.launch.mode import why_no_cuda

    devices, samples = tuple(monitor.devices()), tuple(users.name(monitor.sample(), hosts))
    no_cuda, build = why_no_cuda(devices, platform), platform.gpu_build
    return DeviceReading(devices, samples, monitor.problem, no_cuda, build, monitor.driver)
