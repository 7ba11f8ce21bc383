"""The processor as devices, on this machine's own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time

import psutil
import pytest

from core.machine.devices.cpu import MAX_SLOTS, MIN_SLOTS, HostReader, cpu_slots, processor_name
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import physical_cores
from tests.helpers.wine import not_under_wine

pytestmark = pytest.mark.windows


def test_slots_are_named_after_the_processor_and_counted_by_its_cores() -> None:
    slots = cpu_slots()
    assert MIN_SLOTS <= len(slots) <= MAX_SLOTS
    assert [slot.uuid for slot in slots] == [f"cpu:{number}" for number in range(len(slots))]
    assert all(processor_name() in slot.name and slot.kind == "cpu" for slot in slots)
    assert slots[0].memory_bytes == psutil.virtual_memory().total
    assert len(cpu_slots(5)) == 5


def busy_work() -> int:
    return sum(number * number for number in range(1_500_000))


def test_the_machine_is_read_from_one_sample_to_the_next() -> None:
    reader = HostReader()
    for _ in range(50):
        busy_work()
        sample = reader.host()
        if sample.cpu_percent is not None:
            break
    assert sample.cpu_percent is not None
    assert 0 < sample.cpu_percent <= 100
    assert sample.memory_used_bytes is not None
    assert sample.memory_total_bytes is not None
    assert 0 < sample.memory_used_bytes < sample.memory_total_bytes
    assert reader.host().cpu_percent is not None  # asked again at once: the last figure stands
    assert sample.as_dict()["cpu_percent"] == sample.cpu_percent


def test_a_slot_shows_the_process_that_trains_on_it() -> None:
    reader = HostReader()
    (slot,) = cpu_slots(1)
    reader.watch({slot.uuid: os.getpid()})
    busy_work()
    own = reader.slot(slot, reader.host())
    assert own.error is None
    here = psutil.Process()  # earlier tests of this process may have left a fork server, which counts too
    tree_bytes = sum(process.memory_info().rss for process in (here, *here.children(recursive=True)))
    assert own.memory_used_bytes == pytest.approx(tree_bytes, rel=0.5)
    assert own.utilization_percent is not None
    assert 0 < own.utilization_percent <= 100
    reader.watch({})
    machine = reader.slot(slot, reader.host())
    assert machine.memory_used_bytes != own.memory_used_bytes


def test_a_slot_counts_what_its_process_has_started() -> None:
    """A script's rank sleeps beside the script: its figures are those of both, and of the script's own workers."""
    work = "print(flush=True); block = bytearray(b'x' * (80 << 20))\nwhile True: pass"
    starts_one = (
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-S', '-c', {work!r}]); time.sleep(99)"
    )
    reader, (slot,) = HostReader(), cpu_slots(1)
    with subprocess.Popen([sys.executable, "-S", "-c", starts_one], stdout=subprocess.PIPE) as root:
        reader.watch({slot.uuid: root.pid})
        assert root.stdout is not None
        root.stdout.readline()
        try:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                sample = reader.slot(slot, reader.host())
                if (sample.memory_used_bytes or 0) > 80 << 20 and (sample.utilization_percent or 0) > 5:
                    break
                time.sleep(0.1)
            assert (sample.memory_used_bytes or 0) > 80 << 20 and (sample.utilization_percent or 0) > 5, sample
        finally:
            for process in [*psutil.Process(root.pid).children(recursive=True), root]:
                process.kill()


@not_under_wine("tells the processor time of the process that asks, for every process")
def test_a_slot_is_fully_busy_when_it_uses_its_share_of_the_cores() -> None:
    """A thread that never waits fills one of as many slots as there are cores, and the sleeping others stay idle."""
    reader, slots = HostReader(), cpu_slots(physical_cores())
    sleeper, pipe = [sys.executable, "-S", "-c", "print(flush=True); import sys; sys.stdin.read()"], subprocess.PIPE
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(subprocess.Popen(sleeper, stdin=pipe, stdout=pipe)) for _ in slots[1:]]
        for other in others:
            assert other.stdout is not None
            other.stdout.readline()  # its start is no sleep
        moments = [(time.monotonic(), time.process_time())]
        reader.watch({slot.uuid: pid for slot, pid in zip(slots, [os.getpid(), *(o.pid for o in others)], strict=True)})
        moments.append((time.monotonic(), time.process_time()))
        for _ in range(5):
            busy_work()
        moments.append((time.monotonic(), time.process_time()))
        samples = [reader.slot(slot, reader.host()) for slot in slots]
        moments.append((time.monotonic(), time.process_time()))
    busy = [sample.utilization_percent for sample in samples]
    (began, used_before), (watched, used_then), (done, used_by), (ended, used_after) = moments
    # The reader looked at some moment of the first and of the last pair: on a busy machine they lie far apart.
    least = 100 * (used_by - used_then) / (ended - began)
    most = min(100.0, 100 * (used_after - used_before) / (done - watched))
    assert busy[0] is not None and least - 15 < busy[0] < most + 15
    assert all(percent is not None and percent < 15 for percent in busy[1:])


def test_a_slot_whose_process_has_ended_says_so() -> None:
    reader = HostReader()
    (slot,) = cpu_slots(1)
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        reader.watch({slot.uuid: child.pid, "cpu:1": 2**31 - 1})
    assert reader.slot(slot, reader.host()).error == "its process has ended"


def test_a_monitor_without_gpus_offers_slots_and_says_why() -> None:
    with DeviceMonitor() as monitor:
        if any(device.kind == "cuda" for device in monitor.devices()):
            pytest.skip("this machine has NVIDIA GPUs")
        assert [device.uuid for device in monitor.devices()] == [device.uuid for device in monitor.cpu_slots()]
        assert "NVIDIA driver" in str(monitor.problem)
        assert monitor.driver is None
        samples = monitor.sample()
        assert [sample.uuid for sample in samples] == [device.uuid for device in monitor.devices()]
        assert all(sample.error is None and sample.memory_used_bytes for sample in samples)
