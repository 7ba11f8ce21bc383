"""Figures that were measured are found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.measure.estimate.probe import keep, kept_file, read_kept


def test_what_was_kept_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path))
    path = kept_file("steps-1")
    assert path.is_relative_to(tmp_path) and read_kept(path) == {}
    keep(path, {"pass_s": 1.0})
    assert read_kept(path) == {"pass_s": 1.0}
    path.write_text("[1]", encoding="utf-8")
    assert read_kept(path) == {}


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    keep(tmp_path / "file" / "steps.json", {})
    assert read_kept(tmp_path / "file" / "steps.json") == {}
