"""The way back, by the Python of the version before: a process of its own, as the setup starts it."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from installer.windows import back
from installer.windows.back import put_in_place

OLD, NEW = "0.1.0-aaaaaaaaaa", "0.2.0-bbbbbbbbbb"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program's folder with two versions, of which the newer one starts."""
    program = tmp_path / "Programs ü" / "Rankdeck"
    for name in (OLD, NEW):
        launchers = program / "versions" / name / "launchers"
        (launchers / "bin").mkdir(parents=True)
        (launchers / "Rankdeck.exe").write_text(name, encoding="utf-8")
        (launchers / "bin" / "rankdeck.exe").write_text(name, encoding="utf-8")
    put_in_place(program / "versions" / NEW, 1.0)
    return program


def started(program: Path) -> set[str]:
    return {(program / path).read_text(encoding="utf-8") for path in ("Rankdeck.exe", "bin/rankdeck.exe")}


def test_the_launchers_of_the_version_before_are_put_in_place(program: Path) -> None:
    assert started(program) == {NEW}
    python = program / "versions" / OLD / "python"
    venv.create(python, with_pip=False)
    executable = python / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done = subprocess.run([executable, "-I", back.__file__], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert started(program) == {OLD}
    assert not list(program.rglob("*.back"))


def test_a_launcher_that_cannot_be_replaced_leaves_nothing_half_done(program: Path) -> None:
    (program / "Rankdeck.exe").unlink()
    (program / "Rankdeck.exe" / "held").mkdir(parents=True)
    with pytest.raises(OSError):
        put_in_place(program / "versions" / OLD, 0.1)
    assert not list(program.rglob("*.back"))


def test_a_person_who_does_not_want_back_stays(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(program / "versions" / OLD / "python"))
    monkeypatch.setattr(back, "_message", lambda *_: 7)  # IDNO
    assert back.main(["--ask", "ImportError: Qt"]) == 2
    assert started(program) == {NEW}
