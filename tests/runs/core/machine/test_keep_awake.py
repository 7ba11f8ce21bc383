"""The computer is kept awake for as long as the block lasts, and no longer."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from core.machine import keep_awake

pytestmark = pytest.mark.windows
on_linux = pytest.mark.skipif(sys.platform == "win32", reason="systemd is Linux's")
on_windows = pytest.mark.skipif(sys.platform != "win32", reason="asks Windows")

INHIBIT = """#!/bin/sh
echo "$$ $*" > "{noted}"
while [ "${{1#--}}" != "$1" ]; do shift; done
exec "$@"
"""


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a systemd-inhibit that does as the real one notes its pid and what it was asked; this machine runs none."""
    program = tmp_path / "bin" / "systemd-inhibit"
    program.parent.mkdir()
    program.write_text(INHIBIT.format(noted=tmp_path / "noted"), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(keep_awake, "SYSTEMD_RUNS", tmp_path)
    return tmp_path / "noted"


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def holder(noted: Path) -> psutil.Process:
    assert until(lambda: noted.exists() and noted.read_text(encoding="utf-8").endswith("\n"))
    return psutil.Process(int(noted.read_text(encoding="utf-8").split()[0]))


@on_linux
def test_systemd_is_asked_for_as_long_as_the_block_lasts(noted: Path) -> None:
    with keep_awake.kept_awake():
        process = holder(noted)
        asked = noted.read_text(encoding="utf-8")
        assert "--what=idle:sleep" in asked
        assert "--mode=block" in asked
        assert until(lambda: process.name() == "cat")
    assert not process.is_running()


@on_linux
def test_what_holds_the_wish_ends_with_a_killed_process(noted: Path, tmp_path: Path) -> None:
    script = (
        "import pathlib, sys\nfrom core.machine import keep_awake\n"
        "keep_awake.SYSTEMD_RUNS = pathlib.Path(sys.argv[1])\n"
        "with keep_awake.kept_awake():\n    print(flush=True)\n    sys.stdin.read()"
    )
    root = Path(__file__).resolve().parents[4]
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        held = holder(noted)
        assert held.is_running()
        process.kill()
    assert until(lambda: not held.is_running() or held.status() == psutil.STATUS_ZOMBIE)


@on_linux
@pytest.mark.parametrize("answer", ["exit 1", "absent", "no systemd"])
def test_a_refusal_and_an_absence_change_nothing(noted: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    program = noted.parent / "bin" / "systemd-inhibit"
    if answer == "absent":
        program.unlink()
        monkeypatch.setenv("PATH", str(program.parent))
    elif answer == "no systemd":
        monkeypatch.setattr(keep_awake, "SYSTEMD_RUNS", noted.parent / "absent")
    else:
        program.write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
    with keep_awake.kept_awake():
        pass
    assert not noted.exists()


@on_windows
def test_windows_is_asked_and_told_when_it_is_over() -> None:
    import ctypes

    def state() -> int:
        """What this thread asked of Windows; asking anew is the only way to read it."""
        found: int = kernel.SetThreadExecutionState(0x80000000) & 0xFFFFFFFF
        kernel.SetThreadExecutionState(found)
        return found

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, unused-ignore]
    with keep_awake.kept_awake():
        assert state() & 0x80000001 == 0x80000001
    assert not state() & 1
