"""Settings that a run changes by itself: entered in `run.toml`, or said in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config import RunConfig
from core.host.services import _enter
from core.run_folder.store import RunStore


def test_what_changed_is_entered_and_all_else_stays(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, RunConfig(steps=7, lr=0.5))
    _enter(store, {"lr": 0.25})
    assert (store.config().lr, store.config().steps) == (0.25, 7)


def test_a_file_that_cannot_be_written_is_said_and_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = RunStore.create(tmp_path, RunConfig())
    store.run_toml.unlink()
    store.run_toml.mkdir()
    _enter(store, {"lr": 0.25})
    assert "lr could not be entered in run.toml" in caplog.text
