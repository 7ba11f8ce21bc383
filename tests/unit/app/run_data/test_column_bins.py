"""Bins of long columns, made in another process, are those that the window would make itself."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.run_data import long_bins
from app.run_data.column_bins import take_bins, write_bins
from app.run_data.long_bins import NAME, PLOTTED_NAMES, BinsProcess, KeptBins, LongBins
from app.run_data.run_series import RunSeries
from app.shown_run.run_data import RunData
from core.metrics.column_index import ColumnsIndex, read_index
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import Shape, write_columns

pytestmark = pytest.mark.windows
# Rows: of ranks, not of evaluations.
LONG = 4000


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return write_columns(tmp_path / "run", Shape(steps=5000, eval_every=10))


def opened(store: RunStore) -> tuple[RunSeries, ColumnsIndex]:
    index = read_index(store.columns)
    assert index is not None
    return RunSeries.of_columns(store.columns, index), index


def with_bins(run: RunSeries) -> set[str]:
    return {
        f"{group}/{name}" for group, series in run.groups.items() for name, c in series.columns.items() if c.has_bins
    }


def assert_right(run: RunSeries, store: RunStore) -> None:
    wanted, _ = opened(store)
    for rank in (0, 1):
        for name in PLOTTED_NAMES:
            bins, right = (series.rank(rank).columns[name].pyramid.level(0) for series in (run, wanted))
            np.testing.assert_array_equal(bins, right)
            assert bins.shape == (3, 5000 // 256)


def written(store: RunStore) -> bytes:
    output = io.BytesIO()
    write_bins(store.columns, LONG, PLOTTED_NAMES, output)
    return output.getvalue()


def take(made: bytes, run: RunSeries) -> None:
    kept = KeptBins.parse(made)
    assert kept is not None
    take_bins(kept, run.groups)


def test_the_columns_take_what_was_written(store: RunStore) -> None:
    run, _ = opened(store)
    take(written(store), run)
    assert with_bins(run) == {f"rank{rank}/{name}" for rank in (0, 1) for name in PLOTTED_NAMES}, "long ones alone"
    assert_right(run, store)


def test_a_process_writes_them(store: RunStore) -> None:
    run, _ = opened(store)
    take(BinsProcess(store, LONG).result(threading.Event()), run)
    assert_right(run, store)


def test_a_process_that_is_not_wanted_any_more_ends(store: RunStore) -> None:
    stopping = threading.Event()
    stopping.set()
    assert BinsProcess(store, LONG).result(stopping) == b""
    BinsProcess(store, LONG).close()


def test_a_short_run_needs_none(store: RunStore, tmp_path: Path) -> None:
    assert LongBins.find(store) is None
    assert LongBins.find(RunStore(tmp_path / "no run")) is None


def test_a_long_run_is_shown_with_them(store: RunStore, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_bins, "LONG_ROWS", LONG)
    for source in ("a process", "the file that it left"):
        data = RunData()
        data.open(store.dir)
        qtbot.waitUntil(lambda data=data: data.is_caught_up)  # type: ignore[misc]
        assert_right(data.series, store)
        qtbot.waitUntil((store.columns / NAME).is_file)
        data.close()
        if source == "a process":
            monkeypatch.setattr(long_bins, "BinsProcess", None)  # whoever needs one fails
