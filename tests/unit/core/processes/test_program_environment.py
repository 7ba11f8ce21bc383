"""What Rankdeck's own programs are started with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.paths import PACKAGE_FOLDER, SDK_FOLDER
from core.processes.program_environment import program_environment


def test_ours_comes_first_and_theirs_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    theirs = os.pathsep.join(["mine", "", str(tmp_path / "other"), str(SDK_FOLDER), "mine"])
    env = program_environment({"PYTHONPATH": theirs, "HOME": "x"})
    assert env["PYTHONPATH"].split(os.pathsep) == [
        str(PACKAGE_FOLDER),
        str(SDK_FOLDER),
        str(tmp_path / "mine"),
        str(tmp_path / "other"),
    ]
    assert (env["HOME"], env["PYTHONUTF8"]) == ("x", "1")


def test_own_variables_win_and_nothing_is_changed_in_place() -> None:
    inherited = {"PYTHONUTF8": "0", "RANK": "7"}
    env = program_environment(inherited, {"RANK": "1"})
    assert (env["RANK"], env["PYTHONUTF8"]) == ("1", "1")
    assert env["PYTHONPATH"].split(os.pathsep) == [str(PACKAGE_FOLDER), str(SDK_FOLDER)]
    assert inherited == {"PYTHONUTF8": "0", "RANK": "7"}
