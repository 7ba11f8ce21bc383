"""Checks that only Windows has, each asked of Windows for real: page file, long paths, sleep, OneDrive."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.doctor import folders, machine
from core.doctor.fixes import FixError, open_settings
from core.doctor.quick import examine
from core.machine.platform import this_platform
from core.machine.windows_memory import windows_memory

pytestmark = [
    pytest.mark.windows,
    pytest.mark.skipif(sys.platform != "win32", reason="asks Windows"),
]


def test_page_file_and_commit_charge_are_windows_own() -> None:
    counts = windows_memory()
    assert counts is not None and 0 < counts.commit_free <= counts.commit_limit
    finding = machine.check_page_file()
    assert finding.level in ("ok", "warn") and "commit" in finding.text
    assert (finding.fix == "open_page_file") == (finding.level == "warn")


def test_long_paths_follow_the_registry(tmp_path: Path) -> None:
    assert sys.platform == "win32"
    import winreg

    path = r"SYSTEM\CurrentControlSet\Control\FileSystem"
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
            enabled = winreg.QueryValueEx(key, "LongPathsEnabled")[0] == 1
    except OSError:
        enabled = False
    finding = machine.check_long_paths(tmp_path / (120 * "r"))
    assert (finding.level, finding.fix) == (("ok", "") if enabled else ("warn", "open_long_paths"))


def test_sleep_is_asked_of_powercfg() -> None:
    """Where there is no powercfg, as in Wine, that is the result."""
    finding = machine.check_sleep()
    assert finding.level in ("ok", "not_tried") and finding.text
    assert finding.level == "ok" or "powercfg" in finding.text


def test_runs_below_onedrive_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OneDrive", str(tmp_path).upper())
    assert folders.check_cloud(tmp_path / "runs").level == "warn"
    monkeypatch.setenv("OneDrive", str(tmp_path / "else"))
    assert folders.check_cloud(tmp_path / "runs").level == "ok"


def test_every_check_of_windows_answers(tmp_path: Path) -> None:
    found = {finding.topic.id: finding for finding in examine(tmp_path, this_platform())}
    assert {"page_file", "long_paths", "sleep", "cloud", "writing", "loopback", "mode_ddp"} <= found.keys()
    assert found["writing"].level == "ok" and found["loopback"].level == "ok"
    assert all(finding.next_step for finding in found.values() if finding.level in ("warn", "fail"))


def test_settings_that_windows_does_not_know_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.doctor import fixes

    monkeypatch.setitem(fixes._PAGES, "open_sleep", "no-such-page-of-windows.cpl")  # type: ignore[arg-type]
    with pytest.raises(FixError):
        open_settings("open_sleep")
