"""Self-tests with real processes: two ranks over gloo, one that is killed, cancelled or too slow."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from core.doctor.finding import Finding
from core.doctor.self_tests import SelfTest, judge_modes, list_self_tests, run_self_test
from core.machine.devices import Device
from core.machine.devices.cpu import cpu_slots
from core.machine.platform import Platform, this_platform
from tests.helpers.nvml_sim import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.windows, pytest.mark.timeout(300)]
LIMIT_S = 120.0


def the_test(way: str) -> SelfTest:
    cpus = cpu_slots(2)
    return next(test for test in list_self_tests(cpus, cpus, this_platform()) if test.way == way)


def run(test: SelfTest, **options: object) -> Finding:
    found = run_self_test(test, this_platform(), **{"limit_s": LIMIT_S, **options})  # type: ignore[arg-type]
    assert found.topic.meaning and found.text and (found.next_step or found.level in ("ok", "not_tried"))
    return found


def test_the_processor_computes_in_each_precision() -> None:
    found = run(the_test("compute"))
    assert found.level in ("ok", "warn") and "fp32" in found.text, "a torch may lack a precision on a CPU"


def test_two_processes_over_gloo() -> None:
    found = run(the_test("gloo"))
    assert found.level == "ok" and found.text == "two processes sum tensors", found


def test_nccl_needs_two_gpus() -> None:
    found = run(the_test("nccl"))
    assert found.level == "not_tried" and "two GPUs" in found.text


def test_a_gpu_that_is_not_there_is_a_result() -> None:
    """What the driver lists and torch cannot use: the process fails, and says why."""
    gpu = Device("GPU-00000000-0000-0000-0000-000000000000", "cuda", 0, "NVIDIA RTX 4090", 24 << 30)
    (test,) = list_self_tests([gpu], [], Platform("linux", "2.13.0+cu130", "13.0", 2))[:1]
    found = run(test)
    assert found.level == "fail" and found.fix == "install_cuda"


def ranks_of(pid: int | None = None) -> list[psutil.Process]:
    """Processes of self-tests that a process has started; this one by default."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        try:
            if any("self_test_main" in word for word in child.cmdline()) and not child.children():
                found.append(child)
        except (psutil.Error, OSError):
            continue  # it has ended meanwhile; Wine's answer about such a process is a plain OSError
    return found


def _kill_first_child() -> None:
    """Kills the first process that this one starts which runs a self-test."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        for rank in ranks_of():
            with contextlib.suppress(psutil.Error):
                rank.kill()
                return
        time.sleep(0.01)


@pytest.mark.parametrize("way", ["compute", "gloo"])
def test_a_killed_self_test_is_a_result(way: str) -> None:
    killer = threading.Thread(target=_kill_first_child)
    killer.start()
    found = run(the_test(way))
    killer.join()
    assert found.level == "fail" and "the process" in found.text, found
    if way == "gloo":
        modes = {finding.topic.id: finding for finding in judge_modes([found], this_platform())}
        assert modes["mode_ddp"].level == "fail" and modes["mode_single"].level == "ok"


def test_a_test_that_takes_too_long_is_ended_and_leaves_nothing() -> None:
    found = run(the_test("compute"), limit_s=0.2)
    assert found.level == "fail" and "longer than 0.2 s" in found.text
    assert ranks_of() == []


def test_a_cancelled_test_is_not_tried() -> None:
    found = run(the_test("gloo"), cancelled=lambda: True)
    assert found.level == "not_tried" and "cancelled" in found.text


def test_without_torch_nothing_is_started() -> None:
    platform = Platform("linux", None, None, 2)
    for test in list_self_tests(cpu_slots(2), cpu_slots(2), platform):
        assert run_self_test(test, platform).level == "not_tried"


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C needs a console")
def test_an_interrupted_command_shows_what_it_found(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "core", "doctor", "--self-test", "--json", "--runs-dir", str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=REPOSITORY) as command:
        deadline = time.monotonic() + LIMIT_S
        while not ranks_of(command.pid):
            assert command.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        command.send_signal(signal.SIGINT)
        output, _ = command.communicate(timeout=LIMIT_S)
    found = {item["id"]: item for item in json.loads(output)}
    assert command.returncode == 130
    assert found["link_gloo"]["level"] == "not_tried" and "cancelled" in found["link_gloo"]["text"]
    assert found["python"]["level"] == "ok"
