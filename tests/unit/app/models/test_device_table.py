"""Devices, their figures and their history, from a monitor in a thread."""

from __future__ import annotations

import itertools

from pytestqt.qtbot import QtBot

from app.models.device_table import HISTORY, DeviceReading, DeviceTable
from core.machine.devices import Device, DeviceSample, HostSample

CARD = Device("GPU-1", "cuda", 0, "RTX 4090", 24 << 30)
OTHER = Device("GPU-2", "cuda", 1, "RTX 4090", 24 << 30)


class FakeMonitor:
    def __init__(self) -> None:
        self.problem: str | None = None
        self.closed = False
        self._ticks = itertools.count()

    def devices(self) -> list[Device]:
        return [CARD]

    def sample(self) -> list[DeviceSample]:
        return [DeviceSample("GPU-1", ts=float(next(self._ticks)), utilization_percent=50.0)]

    def host(self) -> HostSample:
        return HostSample(ts=0.0, cpu_percent=12.0)

    def close(self) -> None:
        self.closed = True


def test_figures_arrive_from_the_thread(qtbot: QtBot) -> None:
    monitor = FakeMonitor()
    table = DeviceTable(lambda _: monitor)
    with qtbot.waitSignals([table.devices_changed, table.sampled]):
        table.open()
    table.close()
    assert monitor.closed
    assert table.devices == [CARD]
    assert table.sample("GPU-1") is not None
    assert table.sample("GPU-9") is None
    assert table.host == HostSample(ts=0.0, cpu_percent=12.0)


def test_devices_changed_tells_of_changes_only() -> None:
    table = DeviceTable(lambda _: FakeMonitor())
    told: list[int] = []
    table.devices_changed.connect(lambda: told.append(len(table.devices)))
    host = HostSample(ts=0.0)
    for devices, problem in (
        ((CARD,), None),
        ((CARD,), None),
        ((CARD, OTHER), None),
        ((CARD, OTHER), "gone"),
        ((), "gone"),
    ):
        table._on_item(DeviceReading(devices, (), host, problem))
    assert told == [1, 2, 2, 0]


def test_no_device_at_all_is_told_once() -> None:
    table = DeviceTable(lambda _: FakeMonitor())
    told: list[bool] = []
    table.devices_changed.connect(lambda: told.append(table.is_known))
    for _ in range(2):
        table._on_item(DeviceReading((), (), HostSample(ts=0.0), None))
    assert told == [True]


def test_history_is_bounded() -> None:
    table = DeviceTable(lambda _: FakeMonitor())
    for second in range(HISTORY + 30):
        sample = DeviceSample("GPU-1", ts=float(second))
        table._on_item(DeviceReading((CARD,), (sample,), HostSample(ts=0.0), None))
    assert [s.ts for s in table.history("GPU-1")] == [float(s) for s in range(30, HISTORY + 30)]
