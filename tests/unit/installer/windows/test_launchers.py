"""Launchers: distlib's executable, the line that names a Python, and a program that this Python runs."""

from __future__ import annotations

import io
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


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: launcher.base)
def test_what_it_runs_starts_rankdeck(launcher: Launcher, wheel: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(launcher_bytes(launcher, wheel, "0.1.0-abc"))) as archive:
        assert archive.namelist() == ["__main__.py"]
        program = archive.read("__main__.py").decode()
    names: dict[str, object] = {}
    exec(compile(program.replace("sys.exit(main())", "found = main"), "__main__.py", "exec"), names)
    from rankdeck.__main__ import main

    assert names["found"] is main


def test_a_launcher_is_the_same_bytes_each_time(wheel: Path) -> None:
    assert launcher_bytes(LAUNCHERS[0], wheel, "0.1.0-abc") == launcher_bytes(LAUNCHERS[0], wheel, "0.1.0-abc")
    assert launcher_bytes(LAUNCHERS[0], wheel, "0.1.0-abc") != launcher_bytes(LAUNCHERS[0], wheel, "0.1.0-abd")
