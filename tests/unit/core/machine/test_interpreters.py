"""Which Pythons are found, and what they say of themselves without being started."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path

import pytest

from core.machine.interpreters import describe, find_interpreters, parse_py_list, program_in


def test_this_python_is_offered() -> None:
    found = next(item for item in find_interpreters(None, {}) if item.is_own)
    assert found.path == Path(sys.executable)
    assert found.version == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.slow
def test_an_environment_beside_the_script_comes_first(tmp_path: Path) -> None:
    script = tmp_path / "mein Projekt" / "src" / "train.py"
    script.parent.mkdir(parents=True)
    script.write_text("", encoding="utf-8")
    folder = tmp_path / "mein Projekt" / ".venv"
    venv.create(folder, symlinks=os.name != "nt")
    program = program_in(folder)
    assert program is not None
    packages = next(folder.glob("[Ll]ib/**/site-packages"))
    (packages / "torch-2.13.0+cpu.dist-info").mkdir()
    first, *others = find_interpreters(script, {"VIRTUAL_ENV": str(folder)})
    assert (first.path, first.name, first.torch_version) == (program, "mein Projekt/.venv", "2.13.0+cpu")
    assert first.version == ".".join(map(str, sys.version_info[:3]))
    assert "torch 2.13.0+cpu" in first.text
    assert program not in [other.path for other in others]


@pytest.mark.skipif(os.name == "nt", reason="lays out a conda environment of Linux")
def test_a_conda_environment_is_described_by_its_headers(tmp_path: Path) -> None:
    prefix = tmp_path / "envs" / "train"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").write_text("", encoding="utf-8")
    header = prefix / "include" / "python3.10" / "patchlevel.h"
    header.parent.mkdir(parents=True)
    header.write_text('#define PY_VERSION "3.10.14"', encoding="utf-8")
    environ = {"CONDA_PREFIX": str(prefix), "CONDA_DEFAULT_ENV": "train"}
    found = [item for item in find_interpreters(None, environ) if item.path == prefix / "bin" / "python"]
    assert [(item.name, item.version, item.torch_version) for item in found] == [("train", "3.10.14", None)]


def test_what_py_lists() -> None:
    text = (
        " -V:3.13 *        C:\\Users\\J Doe\\AppData\\Local\\Programs\\Python\\Python313\\python.exe\n"
        " -V:3.11          C:\\Python311\\python.exe\r\n"
        " -3.9-64          D:\\py39\\python.exe\n"
        "No runtimes are installed.\n"
    )
    assert [str(path) for path in parse_py_list(text)] == [
        "C:\\Users\\J Doe\\AppData\\Local\\Programs\\Python\\Python313\\python.exe",
        "C:\\Python311\\python.exe",
        "D:\\py39\\python.exe",
    ]


def test_a_file_that_says_nothing_is_still_offered(tmp_path: Path) -> None:
    program = tmp_path / "odd" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text("", encoding="utf-8")
    found = describe(program)
    assert (found.version, found.torch_version) == ("", None) and found.text.endswith("no torch")
