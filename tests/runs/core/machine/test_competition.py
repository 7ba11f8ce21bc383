"""Real programs on the cores of a real process: who is in its way, and who is not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from core.machine.competition import Competition, find_competition

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a process is tied to a core")
# Beside other tests a program may have less than a tenth of its core for some seconds.
LIMIT_S = 60.0
TIED = "import os\nos.sched_setaffinity(0, {%d})\nprint(flush=True)\n%s"


@pytest.fixture
def start() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ended afterwards."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def busy_on(core: int, started: list[subprocess.Popen[str]]) -> int:
    """A program that computes on one core."""
    return started_on(core, "while True: pass", started)


def started_on(core: int, code: str, started: list[subprocess.Popen[str]]) -> int:
    """A program that is tied to a core and has come to its code."""
    process = subprocess.Popen([sys.executable, "-c", TIED % (core, code)], stdout=subprocess.PIPE, text=True)
    started.append(process)
    assert process.stdout is not None
    process.stdout.readline()
    return process.pid


def names(found: Competition) -> list[int]:
    return [program.pid for program in found.programs]


def test_a_program_on_the_same_core_is_in_the_way(start: list[subprocess.Popen[str]]) -> None:
    core = psutil.Process().cpu_affinity()[0]
    ours, other = busy_on(core, start), busy_on(core, start)
    deadline = time.monotonic() + LIMIT_S
    while other not in names(found := find_competition([ours])[0]):
        assert time.monotonic() < deadline
    assert ours not in names(found)
    assert found.cores == 1 and found.kept_off > 0.15
    (program,) = [one for one in found.programs if one.pid == other]
    assert program.name.startswith("python") and program.cores > 0


def test_the_run_s_own_processes_are_not(start: list[subprocess.Popen[str]]) -> None:
    core = psutil.Process().cpu_affinity()[0]
    first, second = busy_on(core, start), busy_on(core, start)
    for found in find_competition([first, second]):
        assert not {first, second}.intersection(names(found))


def test_a_process_that_sleeps_is_not_kept_off(start: list[subprocess.Popen[str]]) -> None:
    core = psutil.Process().cpu_affinity()[0]
    busy_on(core, start)
    sleeper = started_on(core, "import time; time.sleep(600)", start)
    (found,) = find_competition([sleeper])
    assert found.kept_off < 0.15


def test_a_process_that_has_ended_says_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert find_competition([process.pid], watch_s=0.01) == [Competition()]
