"""The table of what runs where, from pytest's own files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.helpers.suite_table import read_results, tables

TESTS = """
import pytest

def test_passes(): pass
def test_fails(): assert {fails}

@pytest.mark.skip(reason="no such thing here (0x80004001)")
def test_skipped(): pass
"""


def _run(folder: Path, name: str, fails: str) -> Path:
    (folder / "test_some.py").write_text(TESTS.format(fails=fails), encoding="utf-8")
    (folder / "test_whole.py").write_text(
        "import pytest\npytest.skip('all of it', allow_module_level=True)\n", encoding="utf-8"
    )
    out = folder / f"{name}.xml"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={out}", "--rootdir=.", "."]
    subprocess.run(argv, cwd=folder, check=False, stdout=subprocess.DEVNULL)
    return out


def test_the_last_result_counts_and_each_skip_has_its_reason(tmp_path: Path) -> None:
    files = [_run(tmp_path, "first", "0"), _run(tmp_path, "again", "1")]
    assert read_results(files[:1])["test_some::test_fails"] == ("failed", "")
    text = tables(read_results(files))
    assert "| all | 2 | 0 | 2 |" in text
    assert "| 1 | no such thing here |" in text and "| 1 | all of it |" in text
