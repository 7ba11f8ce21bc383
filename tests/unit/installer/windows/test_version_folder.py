"""The check of a version's folder: whole, or the first file that is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from installer.windows.version_folder import CHECK, MANIFEST, damaged_file, write_manifest

ROOT = Path(__file__).parents[4]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "python" / "Lib").mkdir(parents=True)
    (tmp_path / "python" / "Lib" / "a b.py").write_text("1", encoding="utf-8")
    (tmp_path / "rankdeck.ico").write_bytes(b"icon")
    write_manifest(tmp_path)
    return tmp_path


def test_a_whole_folder_has_no_damage_also_when_python_has_compiled_in_it(folder: Path) -> None:
    assert damaged_file(folder) == ""
    (folder / "python" / "Lib" / "a b.pyc").write_bytes(b"compiled")
    assert damaged_file(folder) == ""
    assert len((folder / MANIFEST).read_text(encoding="utf-8").splitlines()) == 2


def test_a_file_that_is_missing_cut_or_changed_is_named(folder: Path) -> None:
    path = folder / "python" / "Lib" / "a b.py"
    path.write_text("", encoding="utf-8")
    assert damaged_file(folder) == "python/Lib/a b.py differs from the file that was built"
    path.unlink()
    assert damaged_file(folder).startswith("python/Lib/a b.py cannot be read (")


def test_the_program_beside_it_says_in_one_line_what_is_wrong(folder: Path) -> None:
    (folder / "rankdeck.ico").write_bytes(b"ico")
    answer = subprocess.run([sys.executable, "-I", folder / CHECK], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout.strip()) == (1, "rankdeck.ico differs from the file that was built")


def test_a_whole_folder_is_refused_where_the_window_cannot_be_opened(folder: Path) -> None:
    hide = "import runpy, sys; sys.modules['PySide6'] = None"
    program = f"{hide}; runpy.run_path({str(folder / CHECK)!r}, run_name='__main__')"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stdout.startswith(("ModuleNotFoundError", "ImportError")) and answer.stdout.count("\n") == 1


def test_a_whole_folder_in_which_the_window_can_be_opened_passes(folder: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "workers" / "sdk")))}
    answer = subprocess.run([sys.executable, folder / CHECK], capture_output=True, text=True, check=False, env=env)
    assert (answer.returncode, answer.stdout) == (0, "")
