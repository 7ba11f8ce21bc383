"""Figures that were measured are found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.measure.estimate.figures import Baselines
from core.measure.estimate.probe import keep, read_kept


def test_what_was_kept_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path))
    assert read_kept(Baselines, "bare-1") is None
    keep("bare-1", {"rss_bytes": {"ddp": 5}})
    assert read_kept(Baselines, "bare-1") == Baselines({"ddp": 5})
    (path,) = tmp_path.rglob("bare-1.json")
    path.write_text("[1]", encoding="utf-8")
    assert read_kept(Baselines, "bare-1") is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "file"))
    keep("steps-1", {})
    assert read_kept(Baselines, "steps-1") is None
