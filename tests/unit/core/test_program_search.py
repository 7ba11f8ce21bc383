"""Where programs of the system are found."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from core.program_search import find_program

pytestmark = pytest.mark.windows
FILE = "thing.exe" if sys.platform == "win32" else "thing"


def made(folder: Path) -> Path:
    folder.mkdir()
    program = folder / FILE
    program.write_bytes(b"")
    program.chmod(0o755)
    return program


def test_a_program_in_the_current_folder_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made(tmp_path / "a downloaded project").parent)
    monkeypatch.setenv("PATH", str(tmp_path / "löst"))
    assert find_program("thing") is None
    mine = made(tmp_path / "löst")
    assert find_program("thing") == str(mine)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "missing"), str(tmp_path / "löst")]))
    assert find_program("thing") == str(mine)


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows has quotation marks in PATH")
def test_a_folder_in_quotation_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = made(tmp_path / "a b")
    monkeypatch.setenv("PATH", f'.;"{mine.parent}";')
    assert find_program("thing") == str(mine)
