"""One reading of a run: from columns and lines, or from lines alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.run_data.whole_run import read_series
from core.metrics import columns
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import Shape, write_lines


@pytest.mark.parametrize("with_columns", [True, False])
def test_all_that_is_written_is_read(tmp_path: Path, with_columns: bool) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=30, eval_every=10), with_columns=with_columns)
    assert columns.is_current(store.dir) == with_columns
    with store.metrics.open("ab") as file:  # a live run's columns are a second behind
        file.write(json.dumps({"event": "step", "ts": 1.0, "rank": 0, "step": 31, "loss": 0.5}).encode() + b"\n")
    run = read_series(store, ("loss",))
    assert run.ranks() == [0, 1]
    assert (run.rank(0).rows, run.rank(1).rows, run.evals.rows) == (31, 30, 3)
    assert run.rank(0).last("loss") == 0.5


def test_a_run_that_is_gone_is_empty(tmp_path: Path) -> None:
    assert read_series(RunStore(tmp_path / "gone")).groups == {}
