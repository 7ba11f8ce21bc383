"""Reading of compared runs: from columns and lines, or from lines alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from app.compare.whole_run import RunReader
from core.metrics import columns
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import Shape, write_lines


def add_step(store: RunStore, step: int, loss: float) -> None:
    with store.metrics.open("ab") as file:
        file.write(json.dumps({"event": "step", "ts": 1.9e9, "rank": 0, "step": step, "loss": loss}).encode() + b"\n")


@pytest.mark.parametrize("with_columns", [True, False])
def test_all_that_is_written_is_read(tmp_path: Path, with_columns: bool) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=30, eval_every=10), with_columns=with_columns)
    assert columns.is_current(store.dir) == with_columns
    add_step(store, 31, 0.5)  # a live run's columns are a second behind
    reader = RunReader(store)
    run = reader.open()
    assert run.ranks() == [0, 1]
    assert (run.rank(0).rows, run.rank(1).rows, run.evals.rows) == (31, 30, 3)
    assert run.rank(0).last("loss") == 0.5
    assert len(run.launches) == 1
    add_step(store, 32, 0.25)
    for batch in reader.read_new():
        run.apply(batch)
    assert run.rank(0).last("loss") == 0.25
    assert reader.read_new() == [] and reader.problem == ""


def test_a_run_that_is_gone_is_empty(tmp_path: Path) -> None:
    assert RunReader(RunStore(tmp_path / "gone")).open().groups == {}
    store = write_lines(tmp_path / "run", Shape(steps=5))
    reader = RunReader(store)
    reader.open()
    shutil.rmtree(store.dir)
    assert reader.read_new() == []
    assert reader.problem == "it was deleted while it was shown."
