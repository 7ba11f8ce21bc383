"""Windows' GPU counters: what each process has of which adapter, and when a rank spills into shared memory.

Names are as Microsoft documents them, the machine is made up: the card 0x0000D2A1 trains (ranks 4711 and, in a
launcher's child, 4812), 0x0000F00D drives the screen.
"""

from __future__ import annotations

import sys
from typing import Final

import pytest

from core.machine.devices.device import DeviceProcess, DeviceSample
from core.machine.devices.gpu_counters import (
    DEDICATED,
    SHARED,
    ProcessUse,
    Readings,
    parse_use,
    spilled_bytes,
    use_on_main_adapter,
    with_use,
)

TRAINS: Final = "0x00000000_0x0000d2a1"
SCREEN: Final = "0x00000000_0x0000f00d"
GIB: Final = 1 << 30

RECORDED: Final[Readings] = {
    DEDICATED: {
        "pid_4711_luid_0x00000000_0x0000D2A1_phys_0": 10.5 * GIB,
        "pid_4711_luid_0x00000000_0x0000F00D_phys_0": 4.0 * (1 << 20),
        "pid_4812_luid_0x00000000_0x0000F00D_phys_0": 7.25 * GIB,
        "pid_1400_luid_0x00000000_0x0000F00D_phys_0": 0.6 * GIB,
        "pid_4_luid_0x00000000_0x0000F00D_phys_0": 0.0,
        "_Total": 3.0,
    },
    SHARED: {
        "pid_4711_luid_0x00000000_0x0000D2A1_phys_0": 3.0 * GIB,
        "pid_4711_luid_0x00000000_0x0000F00D_phys_0": 0.0,
        "pid_4812_luid_0x00000000_0x0000F00D_phys_0": 0.1 * GIB,
        "pid_1400_luid_0x00000000_0x0000F00D_phys_0": 0.05 * GIB,
    },
}


def test_instances_name_process_and_adapter() -> None:
    uses = parse_use(RECORDED)
    assert set(uses) == {4711, 4812, 1400, 4}
    assert uses[4711] == [
        ProcessUse(TRAINS, int(10.5 * GIB), 3 * GIB),
        ProcessUse(SCREEN, 4 << 20, 0),
    ]
    assert uses[4812] == [ProcessUse(SCREEN, int(7.25 * GIB), int(0.1 * GIB))]


def test_names_that_are_no_process_are_left_out() -> None:
    assert parse_use({DEDICATED: {"_Total": 1.0, "pid_x_luid_0x0_0x1_phys_0": 1.0, "pid_5": 1.0}}) == {}
    assert parse_use({}) == {}


def test_a_rank_is_what_it_and_its_children_hold_on_their_card() -> None:
    uses = parse_use(RECORDED)
    assert use_on_main_adapter(uses, [4710, 4711]) == ProcessUse(TRAINS, int(10.5 * GIB), 3 * GIB)
    both = use_on_main_adapter(uses, [4812, 1400])
    assert both is not None
    assert (both.adapter, both.dedicated_bytes) == (SCREEN, int(7.25 * GIB) + int(0.6 * GIB))
    assert use_on_main_adapter(uses, [99]) is None


@pytest.mark.parametrize(
    ("shared", "used", "total", "spills"),
    [
        (3 * GIB, int(11.6 * GIB), 12 * GIB, True),
        (3 * GIB, 6 * GIB, 12 * GIB, False),  # the card has room: pinned on purpose
        (GIB // 4, 12 * GIB, 12 * GIB, False),  # buffers of all-reduce
        (3 * GIB, None, 12 * GIB, True),
        (3 * GIB, 12 * GIB, None, True),
    ],
)
def test_a_rank_spills_where_its_card_is_full(shared: int, used: int | None, total: int | None, spills: bool) -> None:
    use = ProcessUse(TRAINS, 10 * GIB, shared)
    assert spilled_bytes(use, used, total) == (shared if spills else 0)


@pytest.mark.skipif(sys.platform != "win32", reason="asks Windows")
def test_a_windows_without_counters_says_nothing() -> None:
    """Wine has a pdh.dll without these counters."""
    from core.machine.devices.pdh import ProcessGpuUse

    assert isinstance(ProcessGpuUse().read(), dict)


def test_readings_of_cards_get_what_windows_knows_of_their_processes() -> None:
    trains = DeviceSample("GPU-1", 1.0, processes=(DeviceProcess(77, "old"), DeviceProcess(4711, "python")))
    screen = DeviceSample("GPU-2", 1.0, processes=(DeviceProcess(1400, "dwm", 5), DeviceProcess(4812, "python")))
    uses = parse_use(RECORDED)
    first, second = with_use([trains, screen], uses, {"GPU-1": (4710, 4711), "GPU-2": (99,)})
    assert first.processes == (
        DeviceProcess(4711, "python", int(10.5 * GIB), shared_bytes=3 * GIB),
        DeviceProcess(77, "old"),
    )
    assert second.processes[1] == DeviceProcess(1400, "dwm", 5)  # the driver's own figure stays
    assert (first.rank_bytes, first.rank_shared_bytes) == (int(10.5 * GIB), 3 * GIB)
    assert (second.rank_bytes, second.rank_shared_bytes) == (None, None)
    assert first.as_dict()["rank_shared_bytes"] == 3 * GIB and "rank_bytes" not in second.as_dict()
    assert with_use([trains], {}, {}) == [trains]


def test_a_process_on_two_cards_is_left_as_it_is() -> None:
    samples = [DeviceSample(uuid, 1.0, processes=(DeviceProcess(4711, "python"),)) for uuid in ("GPU-1", "GPU-2")]
    assert [s.processes[0].memory_bytes for s in with_use(samples, parse_use(RECORDED), {})] == [None, None]
