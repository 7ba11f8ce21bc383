"""Weights in mapped files, memory that is given back, and processor time of short work, by clocks that tick too."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from torch import nn

from workers.data.prepared import give_back_spare_memory
from workers.host_link.peak_memory import peak_rss_bytes, restart_peak
from workers.measure import process
from workers.measure.process import ProcessorTimer, mapped_bytes

MIB = 1 << 20
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the system's own way to say and do it")


@linux_only
def test_only_what_lies_in_a_mapped_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "größe.bin"
    path.write_bytes(bytes(2 * MIB))
    mapped = torch.from_file(str(path), shared=False, size=MIB // 2)[1024:2024]
    model = nn.ParameterList([nn.Parameter(mapped), nn.Parameter(torch.zeros(3000))])
    assert mapped_bytes(model) == 4000
    assert mapped_bytes(nn.Linear(4, 4)) == 0
    with torch.device("meta"):
        assert mapped_bytes(nn.Linear(4, 4)) == 0


@linux_only
def test_the_peak_counts_from_where_it_was_restarted() -> None:
    much = torch.ones(64 * MIB)
    high = peak_rss_bytes()
    del much
    restart_peak()
    assert peak_rss_bytes() < high - 128 * MIB


@linux_only
def test_spare_memory_goes_back_to_the_system() -> None:
    kept, spare = [], []
    for _ in range(2000):  # small blocks from the heap, of which the last keeps its top where it is
        spare.append(bytearray(64 << 10))
        kept.append(bytearray(1 << 10))
    full = psutil.Process().memory_info().rss
    spare.clear()
    give_back_spare_memory()
    assert psutil.Process().memory_info().rss < full - 60 * MIB
    assert len(kept) == 2000


def compute(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))


def test_work_that_is_shorter_than_a_tick_takes_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate divides by it."""
    monkeypatch.setattr(process, "TICK_S", 1 / 64)
    monkeypatch.setattr(time, "process_time", lambda: 3.0)  # it did not tick meanwhile
    timer = ProcessorTimer(2)
    compute(0.004)
    assert timer.seconds() >= 0.004


def test_long_work_is_shared_by_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "TICK_S", 1 / 64)
    times = iter((3.0, 3.5))
    monkeypatch.setattr(time, "process_time", lambda: next(times))
    assert ProcessorTimer(2).seconds() == 0.25


def test_an_exact_clock_is_believed_however_short_the_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "TICK_S", 0.0)
    times = iter((3.0, 3.001))
    monkeypatch.setattr(time, "process_time", lambda: next(times))
    assert ProcessorTimer(1).seconds() == pytest.approx(0.001)
