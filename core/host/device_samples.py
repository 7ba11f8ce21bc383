"""`device` lines once a second: a thread of its own, because a driver in trouble answers late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from core.machine.devices import Device
from core.machine.devices.monitor import DeviceMonitor

EVERY_S: Final = 1.0
# What stands for `uuid` in the line about the machine itself.
HOST: Final = "host"


def sampled(devices: Collection[Device], available: Collection[Device]) -> set[str]:
    uuids = {device.uuid for device in devices}
    if all(device.kind == "cpu" for device in devices):
        uuids |= {device.uuid for device in available if device.kind == "cuda"}
    return uuids


class DeviceSampler:
    """Samples until it is closed; calls `on_samples` on a thread of its own with the fields of each line."""

    def __init__(
        self, monitor: DeviceMonitor, uuids: Collection[str], on_samples: Callable[[list[dict[str, Any]]], None]
    ) -> None:
        self._monitor = monitor
        self._uuids = frozenset(uuids)
        self._on_samples = on_samples
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="device-sampler", daemon=True)
        self._thread.start()

    def narrow(self, uuids: Collection[str]) -> None:
        self._uuids = frozenset(uuids)

    def close(self, timeout_s: float = 2.0) -> None:
        self._closing.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closing.wait(max(0.0, due - time.monotonic())):
            due = max(due + EVERY_S, time.monotonic())
            # A slot whose process is not known yet has the machine's figures: in its curve they would be a peak of
            # memory that no rank ever used.
            samples = [s for s in self._monitor.sample() if s.uuid in self._uuids and not s.is_whole_machine]
            lines = [sample.as_dict() for sample in samples]
            lines.append({"uuid": HOST, **self._monitor.host().as_dict()})
            if not self._closing.is_set():
                self._on_samples(lines)
