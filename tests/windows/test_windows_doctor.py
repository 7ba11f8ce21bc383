"""Checks that only Windows has, each asked of Windows for real: page file, commit charge."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.doctor import machine
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


def test_every_check_of_windows_answers(tmp_path: Path) -> None:
    found = {finding.topic.id: finding for finding in examine(tmp_path, this_platform())}
    assert {"page_file", "sleep", "writing", "loopback", "mode_ddp"} <= found.keys()
    assert found["writing"].level == "ok" and found["loopback"].level == "ok"
    assert all(finding.next_step for finding in found.values() if finding.level in ("warn", "fail"))
