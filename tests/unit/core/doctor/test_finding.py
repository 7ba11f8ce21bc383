"""Findings for machines that aren't well."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.doctor import devices, machine, software
from core.doctor.finding import GROUPS, MODES, Finding, Topic, answered, merged
from core.doctor.quick import examine
from core.errors import PreflightError
from core.machine.devices import Device, DeviceSample
from core.machine.devices.device import DeviceProcess
from core.machine.platform import Platform

WINDOWS_BAD_TORCH = Platform("windows", "2.9.1+cu128", "12.8", 8)
CARD = Device("GPU-1", "cuda", 0, "NVIDIA GeForce RTX 4090", 24 << 30, (8, 9))
OLD_CARD = Device("GPU-2", "cuda", 1, "NVIDIA GTX 1080", 8 << 30, (6, 1))
TOPIC = Topic("x", "X", "Folders", "It matters.")


def test_every_check_of_this_machine_answers(tmp_path: Path) -> None:
    findings = list(examine(tmp_path, Platform("linux", "2.13.0+cpu", None, 2)))
    ids = [finding.topic.id for finding in findings]
    assert len(set(ids)) == len(ids) >= 17
    assert all(finding.text and finding.topic.meaning and finding.topic.group in GROUPS for finding in findings)
    assert all(finding.next_step for finding in findings if finding.level in ("warn", "fail"))
    assert list(tmp_path.iterdir()) == [], "checking leaves nothing behind"


@pytest.mark.parametrize(
    ("finding", "level", "words"),
    [
        (software.check_torch_build(Platform("linux", None, None, 2)), "fail", "not installed"),
        (software.check_torch_build(Platform("linux", "2.13.0", "12.8", 2)), "ok", "CUDA 12.8"),
        (software.check_connections(WINDOWS_BAD_TORCH), "warn", "gloo"),
        (software.check_connections(Platform("linux", None, None, 2)), "not_tried", "not known"),
        (machine.check_disk(Path(__file__)), "fail", "is a file"),
        (machine.check_writing(Path(__file__)), "fail", "is a file"),
        (devices.check_build([CARD], "591.44", Platform("windows", "2.13.0+cu130", "13.0", 8)), "ok", "8.9"),
        (devices.check_build([CARD], "551.2", Platform("windows", "2.13.0+cu130", "13.0", 8)), "warn", "580"),
        (devices.check_build([CARD, OLD_CARD], "591.4", Platform("linux", "2.13.0", "13.0", 8)), "warn", "7.5"),
        (devices.check_build([OLD_CARD], "551.2", Platform("linux", "2.13.0", "12.6", 8)), "ok", "6.1"),
        (devices.check_card(CARD, None), "warn", "no figures"),
        (devices.check_card(CARD, DeviceSample("GPU-1", 0.0, error="GPU is lost", is_unusable=True)), "warn", "lost"),
        (devices.check_card(CARD, DeviceSample("GPU-1", 0.0)), "not_tried", "does not say"),
    ],
)
def test_what_is_wrong_is_said(finding: Finding, level: str, words: str) -> None:
    assert (finding.level, words in finding.text) == (level, True), finding
    assert finding.level in ("ok", "not_tried") or finding.next_step


def test_a_card_that_others_use_names_them() -> None:
    busy = DeviceSample(
        "GPU-1", 0.0, memory_used_bytes=20 << 30, memory_total_bytes=24 << 30, processes=(DeviceProcess(9, "blender"),)
    )
    assert devices.check_card(CARD, busy).level == "warn" and "blender" in devices.check_card(CARD, busy).text
    free = DeviceSample("GPU-1", 0.0, memory_used_bytes=1 << 30, memory_total_bytes=24 << 30)
    assert devices.check_card(CARD, free).level == "ok" and "23 GiB of 24 GiB" in devices.check_card(CARD, free).text


def test_a_torchvision_for_another_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "installed_version", {"torchvision": "0.28.0"}.__getitem__)
    monkeypatch.setattr(software, "installed_requires", lambda _: ("numpy", "torch==2.13.0"))
    assert software.check_torchvision(Platform("linux", "2.13.0", "12.8", 2)).level == "ok"
    assert software.check_torchvision(Platform("linux", "2.13.0+cpu", None, 2)).level == "warn"
    assert software.check_torchvision(Platform("linux", "2.11.0", "12.8", 2)).level == "warn"


def test_a_machine_whose_page_file_is_small() -> None:
    assert [machine.check_page_file(size).level for size in (1 << 30, 64 << 30)] == ["warn", "ok"]
    assert "GiB" in machine.check_page_file().text


def test_a_folder_that_is_not_there_yet_can_be_made(tmp_path: Path) -> None:
    finding = machine.check_writing(tmp_path / "later")
    assert (finding.level, finding.fix) == ("not_tried", "create_runs_folder")
    assert not (tmp_path / "later").exists()


@pytest.mark.parametrize("error", [RuntimeError("Performance counters may be disabled."), PreflightError("Perf.", "x")])
def test_a_check_that_fails_itself_does_not_end_the_doctor(error: Exception) -> None:
    def break_down() -> Finding:
        raise error

    finding = answered(TOPIC, break_down)
    assert (finding.name, finding.level) == ("X", "warn")
    assert "Perf" in finding.text


def test_a_newer_finding_takes_the_place_of_an_older_one() -> None:
    other = Topic("y", "Y", MODES, "It matters.")
    found = merged([TOPIC.ok("a"), other.ok("b")], [TOPIC.fail("c", "d"), Topic("z", "Z", MODES, "m").ok("e")])
    assert [finding.text for finding in found] == ["c", "b", "e"]
    assert found[0].stops_runs and not other.fail("f", "g").stops_runs, "a mode leaves the others"


def test_a_folder_of_runs_is_made_or_refused(tmp_path: Path) -> None:
    assert "was made" in machine.create_folder(tmp_path / "a" / "b") and (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(PreflightError):
        machine.create_folder(tmp_path / "file")
    assert machine.end_all_leftovers(tmp_path) == "0 processes ended."
