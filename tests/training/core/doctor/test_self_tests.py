"""Self-tests with real processes: two ranks over gloo and shared memory, one that is killed, cancelled or too slow."""

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

from core.config import RunConfig
from core.doctor.finding import Finding
from core.doctor.self_tests import SelfTest, judge_modes, list_self_tests, run_self_test
from core.launch.resolved import resolve
from core.machine.devices import Device
from core.machine.devices.cpu import cpu_slots
from core.machine.platform import Platform, this_platform
from core.recipes.catalog import get_recipe
from tests.helpers.nvml_sim import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.windows, pytest.mark.timeout(300)]
LIMIT_S = 120.0


def the_test(way: str) -> SelfTest:
    """The self-test of this machine's CPU devices."""
    cpus = cpu_slots(2)
    return next(test for test in list_self_tests(cpus, cpus, this_platform(), None) if test.way == way)


def run(test: SelfTest, tmp_path: Path, **options: object) -> list[Finding]:
    """Runs a test with a limit that a busy machine keeps."""
    found = run_self_test(test, this_platform(), tmp_path, **{"limit_s": LIMIT_S, **options})  # type: ignore[arg-type]
    assert all(finding.topic.meaning and finding.text for finding in found)
    assert all(finding.next_step for finding in found if finding.level in ("warn", "fail"))
    return found


def test_the_processor_computes_in_each_precision(tmp_path: Path) -> None:
    compute, bf16, fp16 = run(the_test("compute"), tmp_path)
    assert compute.level == "ok" and "FLOP/s" in compute.text
    assert {bf16.level, fp16.level} <= {"ok", "warn"}, "a torch may lack a precision on a CPU; it was tried"
    assert bf16.topic.id == "bf16_cpu:0" and fp16.topic.id == "fp16_cpu:0"


def test_two_processes_over_gloo(tmp_path: Path) -> None:
    (finding,) = run(the_test("gloo"), tmp_path)
    assert finding.level == "ok" and "MB/s between two processes" in finding.text, finding


def test_two_processes_through_shared_memory(tmp_path: Path) -> None:
    (finding,) = run(the_test("shared"), tmp_path)
    assert finding.level == "ok" and "gloo:" in finding.text, finding


def test_nccl_needs_two_gpus(tmp_path: Path) -> None:
    (finding,) = run(the_test("nccl"), tmp_path)
    assert finding.level == "not_tried" and "two GPUs" in finding.text


def test_a_gpu_that_is_not_there_is_a_result(tmp_path: Path) -> None:
    """What the driver lists and torch cannot use: the process fails, and says why."""
    gpu = Device("GPU-00000000-0000-0000-0000-000000000000", "cuda", 0, "NVIDIA RTX 4090", 24 << 30)
    compute, *others = run(SelfTest("x", "compute", (gpu,)), tmp_path)
    assert compute.level == "fail" and compute.fix == "install_cuda"
    assert [finding.level for finding in others] == ["not_tried", "not_tried"]


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
def test_a_killed_self_test_is_a_result(way: str, tmp_path: Path) -> None:
    killer = threading.Thread(target=_kill_first_child)
    killer.start()
    found = run(the_test(way), tmp_path)
    killer.join()
    assert found[0].level == "fail" and "the process" in found[0].text, found
    assert [finding.level for finding in found[1:]] == ["not_tried"] * (len(found) - 1)
    if way == "gloo":
        modes = {finding.topic.id: finding for finding in judge_modes(found, this_platform())}
        assert modes["mode_ddp"].level == "fail" and modes["mode_single"].level == "ok"


def test_a_test_that_takes_too_long_is_ended_and_leaves_nothing(tmp_path: Path) -> None:
    compute, *_ = run(the_test("compute"), tmp_path, limit_s=0.2)
    assert compute.level == "fail" and "longer than 0.2 s" in compute.text
    assert ranks_of() == []


def test_a_cancelled_test_is_not_tried(tmp_path: Path) -> None:
    (finding,) = run(the_test("gloo"), tmp_path, cancelled=lambda: True)
    assert finding.level == "not_tried" and "cancelled" in finding.text


def test_without_torch_nothing_is_started(tmp_path: Path) -> None:
    platform = Platform("linux", None, None, 2)
    for test in list_self_tests(cpu_slots(2), cpu_slots(2), platform, None):
        assert run_self_test(test, platform, tmp_path)[0].level == "not_tried"


def test_the_chosen_model_fits_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.doctor import fit
    from core.measure.estimate.free import Free

    cpus = cpu_slots(2)
    chosen = resolve(RunConfig(devices=("cpu:0",)), get_recipe("minigpt"), cpus, this_platform())
    (test,) = (test for test in list_self_tests(cpus, cpus, this_platform(), chosen) if test.way == "fit")
    (finding,) = run(test, tmp_path)
    assert finding.level == "ok" and "MiniGPT" in finding.text and "Fits" in finding.text, finding
    monkeypatch.setattr(fit, "free_now", lambda *_: Free(ram=1 << 20, disk=1 << 40))
    (finding,) = run(test, tmp_path)
    assert finding.level == "fail" and "Does not fit" in finding.text, finding
    (cancelled,) = run(SelfTest("x", "fit", run=resolve(
        RunConfig(devices=("cpu:0",), seq_len=48), get_recipe("minigpt"), cpus, this_platform()
    )), tmp_path, cancelled=lambda: True)  # fmt: skip
    assert cancelled.level == "not_tried" and "cancelled" in cancelled.text


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
    assert found["link_shared"]["level"] == "not_tried" and "cancelled" in found["link_shared"]["text"]
    assert found["fit"]["level"] == "not_tried" and found["python"]["level"] == "ok"
