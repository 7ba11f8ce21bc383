"""What a run measured: the same from its columns and from its lines."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest

from core.compare import figures
from core.compare.figures import Figures, mean_speed, read_figures
from core.metrics import columns
from core.metrics.column_index import GroupIndex
from core.run_folder.store import RunStore


def _line(event: str, ts: float, **values: Any) -> dict[str, Any]:
    return {"event": event, "ts": ts, "rank": 0, "attempt": 1, **values}


LINES = [
    _line("launch", 100.0, resumed_from=None),
    *(_line("step", 100.0 + step, step=step, loss=9.0 / step, tokens_per_s=10.0 * step) for step in (1, 2, 3)),
    _line("device", 102.0, uuid="GPU-1", power_w=200.0),
    _line("eval", 102.5, step=2, val_loss=4.0),
    _line("eval", 102.6, step=2, val_loss=5.0) | {"rank": 1},  # ranks that train independently
    _line("eval", 103.5, step=3, val_loss=3.0),
    _line("eval", 103.5, step=3, val_loss=3.1) | {"rank": 1},
    _line("launch", 500.0, resumed_from={"0": 2}),
    _line("step", 501.0, step=3, loss=None, tokens_per_s=30.0),
    _line("device", 501.0, uuid="GPU-1", power_w=100.0),
    _line("eval", 502.0, step=3, val_loss=3.5),
    _line("finished", 504.0),
]


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES), encoding="utf-8")
    return RunStore(tmp_path)


@pytest.mark.parametrize("with_columns", [True, False])
def test_columns_and_lines_say_the_same(store: RunStore, with_columns: bool) -> None:
    if with_columns:
        columns.rebuild(store.dir)
    found = read_figures(store)
    assert found.evals["val_loss"] == [(2.0, 4.0), (2.0, 5.0), (3.0, 3.5)]  # step 3 was trained again
    assert found.last["device/GPU-1"]["power_w"] == 100.0
    assert found.last["rank0"]["step"] == 3
    assert found.speeds == {"tokens_per_s": 20.0}, "a script's steps have no times, so all count alike"


def test_columns_are_read_where_they_are_whole(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    columns.rebuild(store.dir)
    monkeypatch.delattr(figures, "make")  # no line may be needed
    assert read_figures(store).speeds["tokens_per_s"] == 20.0


def speed_of(folder: Path, *ranks: dict[str, list[float]]) -> float | None:
    """The mean speed of ranks with these columns."""
    groups = []
    for number, values in enumerate(ranks):
        group = GroupIndex(f"rank{number}", f"rank{number}", len(values["tokens_per_s"]), tuple(values))
        (folder / group.folder).mkdir()
        for name, rows in values.items():
            group.path(folder, name).write_bytes(array("d", rows).tobytes())
        groups.append(group)
    return mean_speed(folder, groups, "tokens_per_s")


def test_a_long_step_counts_by_its_time(tmp_path: Path) -> None:
    rank = {"tokens_per_s": [100.0, 100.0, 10.0, float("nan")], "step_time_s": [1.0, 1.0, 8.0, 1.0]}
    assert speed_of(tmp_path, rank, rank) == pytest.approx(2 * 280 / 10)


def test_a_run_that_lost_a_rank_has_the_mean_of_both_speeds(tmp_path: Path) -> None:
    whole = {"tokens_per_s": [100.0] * 4, "step_time_s": [1.0] * 4}
    half = {"tokens_per_s": [100.0] * 2, "step_time_s": [1.0] * 2}
    assert speed_of(tmp_path, whole, half) == pytest.approx(150.0)
    assert mean_speed(tmp_path, [], "tokens_per_s") is None


def test_a_long_column_is_averaged_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "PIECES", 3)
    monkeypatch.setattr(figures, "PIECE_ROWS", 2)
    rank = {"tokens_per_s": [float(row) for row in range(101)], "step_time_s": [2.0] * 101}
    assert speed_of(tmp_path, rank) == pytest.approx(50.0, abs=1.0)


def test_what_cannot_be_read_is_missing(tmp_path: Path) -> None:
    assert read_figures(RunStore(tmp_path / "gone")) == Figures()
    (tmp_path / "metrics.jsonl").write_bytes(b'{"event": 3}\nnonsense\n[]\n')
    assert read_figures(RunStore(tmp_path)) == Figures(disk_bytes=25)
