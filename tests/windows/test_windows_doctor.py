"""Checks that only Windows has, each asked of Windows for real: page file, settings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.doctor import machine
from core.doctor.fixes import FixError, open_settings
from core.doctor.quick import examine
from core.machine.platform import this_platform, windows_memory

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


def test_every_check_of_windows_answers(tmp_path: Path) -> None:
    found = {finding.topic.id: finding for finding in examine(tmp_path, this_platform())}
    assert {"page_file", "sleep", "writing", "loopback", "mode_ddp"} <= found.keys()
    assert found["writing"].level == "ok" and found["loopback"].level == "ok"
    assert all(finding.next_step for finding in found.values() if finding.level in ("warn", "fail"))


def test_settings_that_windows_does_not_know_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.doctor import fixes

    monkeypatch.setitem(fixes._PAGES, "open_storage", "no-such-page-of-windows.cpl")  # type: ignore[arg-type]
    with pytest.raises(FixError):
        open_settings("open_storage")
