"""Free memory, and the verdict on a need."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from core.machine.devices import DeviceSample
from core.machine.devices.device import SCREEN_RESERVE_BYTES
from core.machine.platform import windows_memory
from core.measure.estimate.free import free_now, verdict_on


def test_what_is_free_here(tmp_path: Path) -> None:
    samples = [
        DeviceSample("GPU-1", 0.0, memory_used_bytes=10, memory_total_bytes=50),
        DeviceSample("GPU-2", 0.0, memory_total_bytes=50),
    ]
    free = free_now(samples, tmp_path / "not" / "there")
    assert free.devices == {"GPU-1": 40}
    assert free.ram is not None
    assert 0 < free.ram <= psutil.virtual_memory().total
    assert free.disk is not None
    assert (free.commit is None) == (sys.platform != "win32")


def test_a_card_that_drives_the_screen_keeps_memory_for_it(tmp_path: Path) -> None:
    gib = 1 << 30
    samples = [
        DeviceSample("GPU-1", 0.0, memory_used_bytes=gib, memory_total_bytes=8 * gib, drives_screen=True),
        DeviceSample("GPU-2", 0.0, memory_used_bytes=gib, memory_total_bytes=8 * gib, drives_screen=False),
        DeviceSample("GPU-3", 0.0, memory_used_bytes=8 * gib, memory_total_bytes=8 * gib, drives_screen=True),
    ]
    free = free_now(samples, tmp_path).devices
    assert free == {"GPU-1": 7 * gib - SCREEN_RESERVE_BYTES, "GPU-2": 7 * gib, "GPU-3": 0}


@pytest.mark.windows
def test_the_commit_limit_is_memory_and_page_file() -> None:
    memory = windows_memory()
    if sys.platform != "win32":
        assert memory is None
        return
    assert memory is not None
    assert abs(memory.physical - psutil.virtual_memory().total) < 1 << 20
    assert 0 < memory.commit_free < memory.commit_limit
    assert memory.commit_limit >= memory.physical


@pytest.mark.parametrize(
    ("need", "free", "complete", "verdict"),
    [
        (85, 100, True, "fits"),
        (86, 100, True, "tight"),
        (100, 100, True, "tight"),
        (101, 100, True, "too_large"),
        (50, 100, False, "unknown"),
        (101, 100, False, "too_large"),
        (50, None, True, "unknown"),
    ],
)
def test_a_need_beside_what_is_free(need: int, free: int | None, complete: bool, verdict: str) -> None:
    assert verdict_on(need, free, complete=complete) == verdict
