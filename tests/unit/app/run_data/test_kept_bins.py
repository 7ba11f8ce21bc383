"""Bins of long columns, made in another process and kept: only for exactly these columns, whatever befell the file."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.run_data import long_bins
from app.run_data.column import Column
from app.run_data.column_bins import take_bins, write_bins
from app.run_data.long_bins import NAME, PLOTTED_NAMES, BinsProcess, KeptBins, LongBins, keep, read_kept
from app.run_data.pyramid import Pyramid
from app.run_data.run_series import RunSeries
from app.shown_run.run_data import RunData
from core.metrics.column_index import ColumnsIndex, read_index
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import Shape, write_columns

pytestmark = pytest.mark.windows
LONG = 1000
EARLIER = 3000
STEPS = 5000


@pytest.fixture(autouse=True)
def short_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_bins, "LONG_ROWS", LONG)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """With its bins."""
    made = write_columns(tmp_path / "run", Shape(steps=STEPS, eval_every=50))
    keep(made.columns, written(made))
    return made


def index_of(store: RunStore) -> ColumnsIndex:
    index = read_index(store.columns)
    assert index is not None
    return index


def written(store: RunStore) -> bytes:
    output = io.BytesIO()
    write_bins(store.columns, LONG, PLOTTED_NAMES, output)
    return output.getvalue()


def kept(store: RunStore) -> KeptBins | None:
    return read_kept(store.columns, index_of(store))


def with_rows(index: ColumnsIndex, rows: int) -> ColumnsIndex:
    """As it was when the ranks had made so many steps."""
    groups = {n: replace(g, rows=min(g.rows, rows)) if n.startswith("rank") else g for n, g in index.groups.items()}
    return replace(index, groups=groups)


def replace_rows(store: RunStore, name: str, first: int, value: float) -> None:
    for rank in (0, 1):
        path = store.columns / f"rank{rank}" / f"{name}.f64"
        rows = np.fromfile(path, "<f8")
        rows[first:] += value
        rows.tofile(path)


def opened(store: RunStore, bins: LongBins) -> RunSeries:
    """As a window shows it."""
    run = RunSeries.of_columns(store.columns, index_of(store))
    made = bins.take(threading.Event(), index_of(store))
    if made is not None:
        take_bins(made, run.groups)
    return run


def assert_right(run: RunSeries, store: RunStore) -> None:
    wanted = RunSeries.of_columns(store.columns, index_of(store))
    for rank in (0, 1):
        for name in PLOTTED_NAMES:
            bins, right = (series.rank(rank).columns[name].pyramid.level(0) for series in (run, wanted))
            np.testing.assert_array_equal(bins, right)


def test_kept_bins_need_no_process(store: RunStore) -> None:
    bins = LongBins.find(store)
    assert bins is not None
    assert bins._process is None
    run = opened(store, bins)
    has_bins = {
        f"{group}/{name}" for group, series in run.groups.items() for name, c in series.columns.items() if c.has_bins
    }
    assert has_bins == {f"rank{rank}/{name}" for rank in (0, 1) for name in PLOTTED_NAMES}, "long ones alone"
    assert_right(run, store)


def test_a_process_that_is_not_wanted_any_more_ends(store: RunStore) -> None:
    stopping = threading.Event()
    stopping.set()
    assert BinsProcess(store, LONG).result(stopping) == b""
    BinsProcess(store, LONG).close()


def test_a_short_run_needs_none(store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_bins, "LONG_ROWS", STEPS + 1)
    assert LongBins.find(store) is None
    assert LongBins.find(RunStore(tmp_path / "no run")) is None


def test_a_long_run_is_shown_with_them(store: RunStore, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    (store.columns / NAME).unlink()
    for source in ("a process", "the file that it left"):
        data = RunData()
        data.open(store.dir)
        qtbot.waitUntil(lambda data=data: data.is_caught_up)  # type: ignore[misc]
        assert_right(data.series, store)
        qtbot.waitUntil((store.columns / NAME).is_file)
        data.close()
        if source == "a process":
            monkeypatch.setattr(long_bins, "BinsProcess", None)  # whoever needs one fails


def test_a_grown_run_is_continued_from_where_its_bins_end(store: RunStore) -> None:
    """Here by a process, because many rows came; rows that are binned already are not read again."""
    full = index_of(store)
    with_rows(full, EARLIER).save(store.columns)
    keep(store.columns, written(store))
    full.save(store.columns)
    found = kept(store)
    assert found is not None
    assert found.rows("rank0") == EARLIER // 256 * 256
    for rank in (0, 1):
        path = store.columns / f"rank{rank}" / "loss.f64"
        with path.open("r+b") as file:
            file.write(b"\0" * 8 * 256)
    bins = LongBins.find(store)
    assert bins is not None
    assert bins._process is not None
    loss = opened(store, bins).rank(0).columns["loss"].pyramid.level(0)
    assert loss.shape == (3, STEPS // 256)
    assert loss[0, 0] > 0, "the first bin was made when its rows were not yet zero"
    bins.keep()
    again = kept(store)
    assert again is not None
    assert again.rows("rank0") == STEPS // 256 * 256


def test_a_few_new_rows_are_binned_by_the_window_itself(store: RunStore) -> None:
    full = index_of(store)
    with_rows(full, STEPS - 700).save(store.columns)
    keep(store.columns, written(store))
    full.save(store.columns)
    bins = LongBins.find(store)
    assert bins is not None
    assert bins._process is None
    assert_right(opened(store, bins), store)


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_one_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def change_head(**values: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        head, _, rest = path.read_bytes().partition(b"\n")
        path.write_bytes(json.dumps(json.loads(head) | values).encode() + b"\n" + rest)

    return change


@pytest.mark.parametrize(
    "damage",
    [
        cut_in_half, flip_one_bit, make_folder, Path.unlink,
        change_head(version=2), change_head(format="other"), change_head(bin=128), change_head(groups=[]),
        change_head(groups=[{"name": "rank0", "rows": -256, "names": ["ts"], "last_times_sha256": ""}]),
        change_head(groups=7),
    ],
)  # fmt: skip
def test_a_damaged_file_is_not_read(store: RunStore, damage: Callable[[Path], None]) -> None:
    damage(store.columns / NAME)
    assert kept(store) is None


def test_a_damaged_file_is_made_again(store: RunStore) -> None:
    path = store.columns / NAME
    right = path.read_bytes()
    cut_in_half(path)
    bins = LongBins.find(store)
    assert bins is not None
    assert bins._process is not None
    assert_right(opened(store, bins), store)
    bins.keep()
    assert path.read_bytes() == right
    make_folder(path)
    keep(store.columns, right)  # as it was, and no error


def train_again(store: RunStore) -> None:
    for name in ("loss", "ts"):
        replace_rows(store, name, 2000, 0.5)


def take_rows_back(store: RunStore) -> None:
    with_rows(index_of(store), EARLIER).save(store.columns)


@pytest.mark.parametrize("change", [train_again, take_rows_back])
def test_bins_of_other_rows_are_not_used(store: RunStore, change: Callable[[RunStore], None]) -> None:
    change(store)
    assert kept(store) is None
    bins = LongBins.find(store)
    assert bins is not None
    assert_right(opened(store, bins), store)


def test_bins_without_the_times_of_their_rows_are_not_used(store: RunStore) -> None:
    (store.columns / "rank1" / "ts.f64").unlink()
    assert kept(store) is None


def test_bins_of_rows_that_are_replaced_while_they_are_made_are_not_used(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store.columns / NAME).unlink()
    slowly = Column.file_bins

    def replaced_meanwhile(column: Column, begun: Pyramid | None = None) -> Pyramid:
        monkeypatch.setattr(Column, "file_bins", slowly)
        replace_rows(store, "ts", 2000, 0.5)
        return slowly(column, begun)

    monkeypatch.setattr(Column, "file_bins", replaced_meanwhile)
    keep(store.columns, written(store))
    assert kept(store) is None


def test_nothing_is_written_through_a_link(store: RunStore, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    store.columns.rename(elsewhere)
    try:
        store.columns.symlink_to(elsewhere, target_is_directory=True)
    except OSError:
        pytest.skip("this account may not make links")
    (elsewhere / NAME).unlink()
    keep(store.columns, b"x")
    assert not (elsewhere / NAME).exists()


def test_two_windows_at_once(store: RunStore) -> None:
    right = (store.columns / NAME).read_bytes()
    (store.columns / NAME).unlink()
    windows = [LongBins.find(store), LongBins.find(store)]
    failures: list[BaseException] = []

    def show(bins: LongBins) -> None:
        try:
            assert_right(opened(store, bins), store)
            bins.keep()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=show, args=(bins,)) for bins in windows if bins is not None]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(threads) == 2
    assert failures == []
    assert (store.columns / NAME).read_bytes() == right
    assert {path.name for path in store.columns.glob(".*")} == set()


def test_what_a_killed_window_left_is_removed(store: RunStore) -> None:
    left = store.columns / f".{NAME}.0123456789ab.rankdeck-tmp"
    of_host = store.columns / ".index.json.0123456789ab.rankdeck-tmp"
    for path in (left, of_host):
        path.write_bytes(b"half")
    keep(store.columns, written(store))
    assert not left.exists()
    assert of_host.exists()
