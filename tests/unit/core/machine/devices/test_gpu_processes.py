"""Names of processes, as they stand beside a GPU."""

from __future__ import annotations

import os

import pytest

from core.machine.devices.gpu_processes import ProcessNames, plain_name

pytestmark = pytest.mark.windows


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


def test_this_process_has_a_name_and_one_that_is_gone_has_none() -> None:
    names = ProcessNames()
    found = names.read([os.getpid(), 2**31 - 1])
    assert found[os.getpid()] and found[2**31 - 1] == ""
    assert names.read([]) == {}
