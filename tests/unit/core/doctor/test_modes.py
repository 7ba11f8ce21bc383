"""Verdicts on modes, for machines of all kinds."""

from __future__ import annotations

import pytest

from core.doctor import software
from core.doctor.finding import Finding, find_problems, problems_text
from core.doctor.modes import check_modes
from core.doctor.self_tests import GLOO, NCCL
from core.machine.devices import Device
from core.machine.platform import Platform

CPUS = [Device(f"cpu:{number}", "cpu", number, f"CPU {number}") for number in range(3)]
GPUS = [Device(f"GPU-{number}", "cuda", number, "NVIDIA RTX 4090", 24 << 30, (8, 9)) for number in range(2)]
LINUX = Platform("linux", "2.13.0+cu130", "13.0", 8, "0.19.8")
WINDOWS = Platform("windows", "2.13.0+cu130", "13.0", 8)
CPU_ONLY = Platform("linux", "2.13.0+cpu", None, 8)
ALONE, TOGETHER = {"single", "independent"}, {"ddp", "zero1", "zero2", "zero3", "fsdp"}


def verdicts(
    devices: list[Device], platform: Platform, links: dict[str, Finding] | None = None
) -> dict[str, tuple[str, str]]:
    found = check_modes(devices, CPUS, platform, links or {})
    told_once = "whose self-test failed"  # the line of that self-test says what to do
    wrong = [finding for finding in found if finding.level in ("warn", "fail")]
    assert all(finding.next_step or finding.text.endswith(told_once) for finding in wrong)
    assert len(find_problems(found)) <= 1, "one cause is one problem, however many modes suffer from it"
    return {finding.topic.id.removeprefix("mode_"): (finding.level, finding.text) for finding in found}


def test_two_gpus_under_linux_do_everything() -> None:
    found = verdicts(GPUS, LINUX)
    assert {level for level, _ in found.values()} == {"ok"} and len(found) == 8
    assert "NCCL" in found["ddp"][1] and "GPU 0" in found["single"][1]


def test_under_windows_gpus_exchange_through_memory() -> None:
    found = verdicts(GPUS, WINDOWS)
    assert {found[mode][0] for mode in ALONE} == {"ok"}
    assert {found[mode][0] for mode in TOGETHER} == {"warn"} and "memory" in found["ddp"][1]
    assert found["deepspeed"][0] == "not_tried" and "deepspeed" in found["deepspeed"][1]


def test_a_torch_without_gloo_leaves_the_modes_that_need_none() -> None:
    found = verdicts(GPUS, Platform("windows", "2.9.1+cu130", "13.0", 8, "0.16.5"))
    assert {found[mode][0] for mode in ALONE} == {"ok"}
    assert {found[mode][0] for mode in TOGETHER | {"deepspeed"}} == {"fail"}


def test_one_gpu_has_nothing_to_share_with() -> None:
    found = verdicts(GPUS[:1], LINUX)
    assert found["single"][0] == "ok"
    assert {found[mode][0] for mode in found if mode != "single"} == {"not_tried"}


def test_a_gpu_that_torch_cannot_use_is_a_degradation() -> None:
    found = verdicts(GPUS, CPU_ONLY)
    assert {found[mode][0] for mode in ALONE | TOGETHER} == {"warn"}
    assert found["ddp"][1] == "works on CPU 0 and CPU 1 over gloo, not on a GPU", "the remedy is said once"
    told = [*check_modes(GPUS, CPUS, CPU_ONLY, {}), software.check_torch_build(CPU_ONLY)]
    assert problems_text(told) == "1 problem: PyTorch cannot use your GPUs"


def test_without_torch_nothing_trains() -> None:
    bare = Platform("linux", None, None, 2)
    assert {level for level, _ in verdicts(CPUS, bare).values()} == {"fail"}
    (problem,) = find_problems([*check_modes(CPUS, CPUS, bare, {}), software.check_torch_build(bare)])
    first = problem.findings[0]
    assert (problem.title, problem.level, first.topic, first.fix) == (
        "PyTorch is missing", "fail", software.TORCH, "copy_command",
    )  # fmt: skip


def test_a_broken_link_and_its_modes_are_one_problem() -> None:
    broken = GLOO.fail("the process crashed", "Restart.")
    (problem,) = find_problems([*check_modes(CPUS, CPUS, LINUX, {"gloo": broken}), broken])
    assert problem.title == GLOO.name and problem.findings[0] is broken
    assert "DDP" in problem.affects and "One device" not in problem.affects


@pytest.mark.parametrize(("way", "devices"), [("gloo", CPUS), ("gloo", GPUS), ("nccl", GPUS)])
def test_a_link_that_failed_in_its_test_takes_its_modes_along(way: str, devices: list[Device]) -> None:
    topic = GLOO if way == "gloo" else NCCL
    found = verdicts(devices, LINUX, {way: topic.fail("the process crashed", "Restart.")})
    assert {found[mode] for mode in TOGETHER} == {("fail", f"needs {topic.name}, whose self-test failed")}
    assert {found[mode][0] for mode in ALONE} == {"ok"}


def test_a_link_that_was_not_tried_changes_nothing() -> None:
    found = verdicts(CPUS, CPU_ONLY, {"gloo": GLOO.not_tried("cancelled"), "nccl": NCCL.fail("x", "y")})
    assert {found[mode][0] for mode in ALONE | TOGETHER} == {"ok"}
