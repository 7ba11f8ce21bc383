"""The doctor's findings for machines that aren't well."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.cli import checks
from core.machine.platform import Platform

WINDOWS_BAD_TORCH = Platform("windows", "2.9.1+cu128", "12.8", 8)


def test_every_check_of_this_machine_answers(tmp_path: Path) -> None:
    findings = list(checks.examine(tmp_path, Platform("linux", "2.13.0+cpu", None, 2)))
    names = [finding.name for finding in findings]
    assert len(set(names)) == len(names) >= 10
    assert all(finding.text for finding in findings)
    assert all(finding.next_step for finding in findings if finding.level != "ok")


@pytest.mark.parametrize(
    ("finding", "level", "words"),
    [
        (checks.check_python((3, 10, 1)), "fail", "3.10.1"),
        (checks.torch_build(Platform("linux", None, None, 2)), "fail", "not installed"),
        (checks.torch_build(Platform("linux", "2.13.0", "12.8", 2)), "ok", "CUDA 12.8"),
        (checks.gloo(WINDOWS_BAD_TORCH), "warn", "gloo"),
        (checks.gloo(Platform("linux", None, None, 2)), "warn", "not known"),
        (checks.zero_engine(Platform("linux", "2.13.0", None, 2, "0.19.8")), "ok", "DeepSpeed 0.19.8"),
        (checks.zero_engine(Platform("linux", "2.13.0", None, 2)), "ok", "DeepSpeed is not installed"),
        (checks.disk(Path(__file__)), "fail", "is a file"),
        (
            checks.sleep_setting(lambda: "Minimum: 0x00000000\nAC: 0x00000708\nDC: 0x0000012c"),
            "ok",
            "30 minutes, but not while",
        ),
        (checks.sleep_setting(lambda: "AC: 0x00000000\nDC: 0x0000012c"), "ok", "never"),
        (checks.sleep_setting(lambda: "?"), "ok", "could not be read"),
    ],
)
def test_what_is_wrong_is_said(finding: checks.Finding, level: str, words: str) -> None:
    assert (finding.level, words in finding.text) == (level, True), finding
    assert finding.level == "ok" or finding.next_step


def test_a_torchvision_for_another_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "installed_version", {"torchvision": "0.28.0"}.__getitem__)
    monkeypatch.setattr(checks, "installed_requires", lambda _: ("numpy", "torch==2.13.0"))
    assert checks.torchvision(Platform("linux", "2.13.0", "12.8", 2)).level == "ok"
    assert checks.torchvision(Platform("linux", "2.13.0+cpu", None, 2)).level == "warn"
    assert checks.torchvision(Platform("linux", "2.11.0", "12.8", 2)).level == "warn"


def test_the_qt_that_dies_on_python_3_11_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "installed_version", lambda _: "6.12.0")
    assert checks.pyside((3, 11)).level == "fail"
    assert checks.pyside((3, 12)).level == "ok"


def test_a_machine_whose_page_file_is_small() -> None:
    assert [checks.page_file(size).level for size in (1 << 30, 64 << 30)] == ["warn", "ok"]
    assert "GiB" in checks.page_file().text


def test_a_check_that_fails_itself_does_not_end_the_doctor() -> None:
    def break_down() -> checks.Finding:
        raise RuntimeError("Performance counters may be disabled.")

    finding = checks.answered("Page file", break_down)
    assert (finding.name, finding.level) == ("Page file", "warn")
    assert "Performance counters" in finding.text
