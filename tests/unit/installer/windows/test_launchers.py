"""Launchers: distlib's executable, the line that names a Python, and a program that this Python runs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from installer.windows.launchers import LAUNCHERS, Launcher, launcher_bytes

EXECUTABLES = {"distlib/w64.exe": b"MZ window", "distlib/t64.exe": b"MZ console"}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "distlib.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in EXECUTABLES.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: launcher.base)
def test_a_launcher_names_the_python_of_its_version_wherever_it_lies(launcher: Launcher, wheel: Path) -> None:
    content = launcher_bytes(launcher, wheel, "0.1.0-abc")
    executable = EXECUTABLES[f"distlib/{launcher.base}"]
    assert content.startswith(executable + b"#!<launcher_dir>\\")
    line = content[len(executable) :].split(b"\r\n")[0].decode()
    up = "..\\" * launcher.path.count("\\")
    assert line == rf"#!<launcher_dir>\{up}versions\0.1.0-abc\python\{launcher.python} -I"


def program_of(launcher: Launcher, wheel: Path) -> str:
    with zipfile.ZipFile(io.BytesIO(launcher_bytes(launcher, wheel, "0.1.0-abc"))) as archive:
        assert archive.namelist() == ["__main__.py"]
        return archive.read("__main__.py").decode()


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: launcher.base)
def test_what_it_runs_starts_rankdeck(launcher: Launcher, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankdeck.__main__.main", lambda: 7)
    with pytest.raises(SystemExit) as ended:
        exec(compile(program_of(launcher, wheel), "__main__.py", "exec"), {})
    assert ended.value.code == 7


@pytest.mark.skipif(sys.platform == "win32", reason="a message box would wait for a person")
def test_the_only_version_says_why_it_does_not_open(wheel: Path, tmp_path: Path) -> None:
    own = tmp_path / "versions" / "0.1.0-aaa"
    (own / "launchers").mkdir(parents=True)
    program = tmp_path / "program.py"
    preamble = (
        f"import os, sys\nsys.prefix = {str(own / 'python')!r}\nsys.modules['rankdeck'] = None\n"
        "os.startfile = lambda path: print('opened', path.name)\n"
    )
    program.write_text(preamble + program_of(LAUNCHERS[0], wheel), encoding="utf-8")
    environment = {**os.environ, "LOCALAPPDATA": str(tmp_path)}
    ended = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (1, "opened start-failed.txt")
    said = (tmp_path / "Rankdeck" / "start-failed.txt").read_text(encoding="utf-8")
    assert "Rankdeck did not start." in said and "ModuleNotFoundError" in said and "Traceback" in said


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for the Python of the version before")
def test_a_version_that_does_not_open_asks_for_the_way_back(wheel: Path, tmp_path: Path) -> None:
    versions = tmp_path / "versions"
    before, own = versions / "0.1.0-aaa", versions / "0.2.0-bbb"
    for folder in (before, own):
        (folder / "launchers").mkdir(parents=True)
    asked = tmp_path / "asked"
    python = before / "python" / "pythonw.exe"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{asked}.new"; mv "{asked}.new" "{asked}"\n', encoding="utf-8")
    python.chmod(0o755)
    program = tmp_path / "program.py"
    preamble = f"import sys\nsys.prefix = {str(own / 'python')!r}\nsys.modules['rankdeck'] = None\n"
    program.write_text(preamble + program_of(LAUNCHERS[0], wheel), encoding="utf-8")
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    deadline = time.monotonic() + 60
    while not asked.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    words = asked.read_text(encoding="utf-8").splitlines()
    assert words[:3] == ["-I", str(own / "back.py"), "--ask"] and words[3].startswith("ModuleNotFoundError: ")


def test_a_launcher_is_the_same_bytes_each_time(wheel: Path) -> None:
    assert launcher_bytes(LAUNCHERS[0], wheel, "0.1.0-abc") == launcher_bytes(LAUNCHERS[0], wheel, "0.1.0-abc")
    assert launcher_bytes(LAUNCHERS[0], wheel, "0.1.0-abc") != launcher_bytes(LAUNCHERS[0], wheel, "0.1.0-abd")
