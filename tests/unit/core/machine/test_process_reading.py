"""Processes as they are read: their names, what they have started, and those that cannot be read."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from core.machine.process_reading import descendants, plain_name, program_name

NO_PID = 2**31 - 1


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("python3.12", "python"),
        ("python.exe", "python"),
        ("Python", "Python"),
        ("blender-4.2", "blender-4.2"),
        ("ollama.EXE", "ollama"),
        ("", ""),
    ],
)
def test_a_program_is_called_as_a_person_does(program: str, name: str) -> None:
    assert plain_name(program) == name


def test_what_a_process_has_started_is_found_however_it_is_named() -> None:
    code = "import subprocess, sys\nprint(flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        for root in (os.getpid(), psutil.Process()):
            assert child.pid in [process.pid for process in descendants(root)]
        assert program_name(child.pid) == program_name(os.getpid()) != ""
        process = psutil.Process(child.pid)
        child.communicate()
    assert descendants(process) == [] and program_name(child.pid) == ""


@pytest.mark.parametrize("pid", [NO_PID, -1, 2**70])
def test_what_cannot_be_read_has_nothing(pid: int) -> None:
    assert descendants(pid) == [] and program_name(pid) == ""
