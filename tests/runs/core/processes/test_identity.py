"""Identity of processes, on real ones."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from core.processes.identity import ProcessId, identify, is_alive, own

pytestmark = pytest.mark.windows

WAITS_FOR_INPUT = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]


def test_this_process_is_alive() -> None:
    assert own().pid == os.getpid()
    assert is_alive(own())
    assert identify(os.getpid()) == own()


def test_a_child_is_alive_until_it_ends_even_while_its_parent_has_not_reaped_it() -> None:
    with subprocess.Popen(WAITS_FOR_INPUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        process = identify(child.pid)
        assert process is not None
        assert is_alive(process)
        child.kill()
        assert child.stdout is not None
        child.stdout.read()  # ends when the child has; poll() has not been called, so on Linux it is a zombie
        for _ in range(1000):
            if not is_alive(process):
                break
        assert not is_alive(process)
    assert not is_alive(process)


def test_a_recycled_pid_is_not_the_process_that_had_it() -> None:
    assert not is_alive(ProcessId(os.getpid(), own().started - 3600))
    assert not is_alive(ProcessId(os.getpid(), own().started + 1.5))


def test_two_readings_of_the_start_time_may_differ_by_rounding() -> None:
    assert is_alive(ProcessId(os.getpid(), own().started + 0.02))
    assert is_alive(ProcessId(os.getpid(), round(own().started)))


@pytest.mark.parametrize("pid", [0, -1, 2**31 - 1, 2**80])
def test_a_pid_that_nobody_has_is_no_process(pid: int) -> None:
    assert identify(pid) is None
    assert not is_alive(ProcessId(pid, 0.0))


@pytest.mark.skipif(sys.platform == "win32", reason="pid 1 is always there on POSIX only")
def test_another_users_process_can_be_identified() -> None:
    process = identify(1)
    assert process is not None
    assert is_alive(process)
