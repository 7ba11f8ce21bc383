"""Devices, their figures, from a monitor in a thread."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.devices import device_table
from app.devices.device_table import DeviceReading, DeviceTable
from core.machine import platform
from core.machine.devices import Device, DeviceSample
from core.machine.platform import Platform

CARD = Device("GPU-1", "cuda", 0, "RTX 4090", 24 << 30)
OTHER = Device("GPU-2", "cuda", 1, "RTX 4090", 24 << 30)


class FakeMonitor:
    def __init__(self) -> None:
        self.problem: str | None = None
        self.driver: str | None = "580.65"
        self.closed = False
        self._ticks = itertools.count()

    def devices(self) -> list[Device]:
        return [CARD]

    def sample(self) -> list[DeviceSample]:
        return [DeviceSample("GPU-1", ts=float(next(self._ticks)), utilization_percent=50.0)]

    def close(self) -> None:
        self.closed = True


def test_figures_arrive_from_the_thread(qtbot: QtBot) -> None:
    monitor = FakeMonitor()
    table = DeviceTable(lambda _: monitor)
    with qtbot.waitSignal(table.devices_changed), qtbot.waitSignal(table.sampled) as sampled:
        table.open()
    table.close()
    assert monitor.closed
    assert table.devices == [CARD]
    assert [sample.uuid for sample in sampled.args[0]] == ["GPU-1"]


@pytest.mark.parametrize(
    ("readings", "changes"),
    [
        ([((CARD,), (), None), ((CARD,), (), None), ((CARD, OTHER), (), None), ((CARD, OTHER), (), "gone")], 3),
        ([((), (), None), ((), (), None)], 1),
        ([((CARD,), (), None, "a CPU build", None)] * 2 + [((CARD,), (), None, None, "13.0")], 2),
    ],
)
def test_devices_changed_tells_of_changes_only(readings: list[tuple[Any, ...]], changes: int) -> None:
    table = DeviceTable(lambda _: FakeMonitor())
    told: list[bool] = []
    table.devices_changed.connect(lambda: told.append(table.is_known))
    for reading in readings:
        table._on_item(DeviceReading(*reading))
    assert told == [True] * changes


def test_what_is_installed_is_read_again_when_asked(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Platform("linux", "2.13.0+cpu", None, 2)
    monkeypatch.setattr(platform, "this_platform", lambda: found)
    monkeypatch.setattr(device_table, "SAMPLE_S", 0.01)
    table = DeviceTable(lambda _: FakeMonitor())
    with qtbot.waitSignal(table.devices_changed):
        table.open()
    assert table.cuda_build is None and table.no_cuda is not None
    found = Platform("linux", "2.13.0+cu130", "13.0", 2)
    with qtbot.waitSignal(table.devices_changed):
        table.look_again()
    table.close()
    assert table.cuda_build == "13.0" and table.no_cuda is None
