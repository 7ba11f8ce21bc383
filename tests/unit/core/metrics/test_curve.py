"""Curve of a metric at a few points, from columns, from lines, and from damaged files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from core.metrics import curve
from core.metrics.curve import POINTS, MetricCurve, read_curve
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import Shape, write_columns, write_lines

pytestmark = pytest.mark.windows


def read(store: RunStore, *names: str) -> MetricCurve:
    return read_curve(store.columns, store.metrics, names or ("loss",), ("val_loss",))


def test_a_long_run_from_its_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write_columns(tmp_path / "run", Shape(steps=200_000))
    read_rows: list[int] = []
    real = curve.read_rows
    monkeypatch.setattr(
        curve, "read_rows", lambda path, first, count: read_rows.append(count) or real(path, first, count)
    )
    found = read(store)
    assert len(found.points) == POINTS
    assert found.points[0] == pytest.approx(4.75, abs=0.1) and found.points[-1] == pytest.approx(1.55, abs=0.05)
    assert found.best_low == pytest.approx(1.6, abs=0.01) and found.best_high == pytest.approx(4.8, abs=0.1)
    assert sum(read_rows) < 5000, "a curve costs the same whatever the run's length"


def test_a_short_run_has_a_point_per_step(tmp_path: Path) -> None:
    found = read(write_columns(tmp_path / "run", Shape(steps=5, ranks=1)))
    assert len(found.points) == 5 and found.last == found.points[-1]


@pytest.mark.parametrize("steps", [1, 5, 17, 40, 3000])
def test_a_run_without_columns_from_its_lines(tmp_path: Path, steps: int) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=steps))
    found = read(store)
    assert 1 <= len(found.points) <= POINTS
    lines = [json.loads(line) for line in store.metrics.read_bytes().splitlines()]
    newest = {line["rank"]: line["loss"] for line in lines if line.get("event") == "step"}
    assert found.last == pytest.approx(sum(newest.values()) / 2), "the mean of both ranks"
    if steps == 3000:
        assert found.points[0] > 4.2 and found.points[-1] < 1.8


def test_the_preferred_name_that_there_is(tmp_path: Path) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=20), with_columns=True)
    assert read(store, "episode_return", "lr").points == read(store, "lr").points != ()
    assert read(store, "episode_return").points == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff" * 50_000,
        b"{" * 40_000,
        b"[" * 200_000 + b"\n",
        b'{"event": "step", "rank": 0, "loss": NaN}\n',
        b'{"event": "step", "rank": 0, "loss": "1.5"}\n',
        b'{"event": "step", "rank": 0, "loss": ' + b"9" * 400 + b"}\n",
    ],
)
def test_damaged_lines_are_no_curve(tmp_path: Path, content: bytes) -> None:
    store = RunStore(tmp_path)
    store.metrics.write_bytes(content)
    assert read(store) == MetricCurve()


def test_damaged_columns_are_no_curve(tmp_path: Path) -> None:
    store = write_columns(tmp_path / "run", Shape(steps=300))
    assert len(read(store).points) == POINTS
    for path in store.columns.rglob("loss.f64"):
        path.write_bytes(path.read_bytes()[:-3])  # its last number is cut off
    assert all(math.isfinite(value) for value in read(store).points)
    for path in store.columns.rglob("*.f64"):
        path.unlink()
    assert read(store) == MetricCurve()
    (store.columns / "index.json").write_bytes(b"\x00" * 100)
    assert read(store) == MetricCurve()
    assert read_curve(tmp_path / "nowhere", tmp_path / "nowhere.jsonl", ("loss",)) == MetricCurve()
