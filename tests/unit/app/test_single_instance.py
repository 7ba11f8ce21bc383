"""Arguments that a second start hands over."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.single_instance import run_to_show, with_full_paths


def test_a_run_is_a_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run_to_show(["--window", str(tmp_path)]) == tmp_path
    for arguments in ([], ["--window"], ["--window", str(tmp_path / "no")], ["--window", str(tmp_path / "file")]):
        assert run_to_show(arguments) is None
    assert run_to_show(["-style", "fusion"]) is None


def test_paths_are_whole_for_a_process_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)
    assert with_full_paths(["--window", "run"]) == ["--window", str(tmp_path / "run")]
    assert with_full_paths(["-style", "fusion"]) == ["-style", "fusion"]
