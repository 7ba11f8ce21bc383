"""The Qt side of a run: signals once a batch, another run in its place, nothing after closing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.run_data.run_series import ChangeSet
from app.shown_run.run_data import RunData
from core.errors import RunNotFoundError
from core.processes import identity
from tests.helpers.synthetic_run import Shape, make_run, write_lines

pytestmark = pytest.mark.windows


def opened(qtbot: QtBot, data: RunData, folder: Path) -> list[ChangeSet]:
    changes: list[ChangeSet] = []
    data.changed.connect(changes.append)
    data.open(folder)
    qtbot.waitUntil(lambda: data.is_caught_up and bool(changes))
    return changes


def test_a_run_is_replayed_and_then_followed(tmp_path: Path, qtbot: QtBot) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=200), state="training", host=identity.own())
    data = RunData()
    opened(qtbot, data, store.dir)
    assert data.state == store.stored_state()
    assert data.series.rank(1).rows == 200
    assert [sample["text"] for sample in data.samples] == ["def f():"]
    line = {"ts": 2e9, "event": "step", "rank": 0, "attempt": 1, "step": 201, "loss": 0.5}
    with qtbot.waitSignal(data.changed) as change, store.metrics.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
    assert change.args[0].groups == {"rank0"}
    assert data.series.rank(0).last("loss") == 0.5
    with qtbot.waitSignal(data.status_changed) as told:
        store.write_state(store.stored_state().replace(step=201))
    assert told.args[0].step == 201
    data.close()


@pytest.mark.parametrize("with_columns", [False, True])
def test_events_are_told_once_each(tmp_path: Path, qtbot: QtBot, with_columns: bool) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=300, eval_every=50), with_columns=with_columns)
    data = RunData()
    changes = opened(qtbot, data, store.dir)
    told = [event for change in changes for event in change.events]
    assert told == data.series.events
    assert len(told) == 9
    data.close()


def test_another_run_takes_its_place(tmp_path: Path, qtbot: QtBot) -> None:
    first, second = (write_lines(tmp_path / name, Shape(steps=n)) for name, n in (("a", 30), ("b", 70)))
    data = RunData()
    opened(qtbot, data, first.dir)
    resets: list[int] = []
    data.reset.connect(lambda: resets.append(data.series.rank(0).rows))
    data.open(second.dir)
    assert data.series.rank(0).rows == 0
    qtbot.waitUntil(lambda: data.is_caught_up)
    assert data.series.rank(0).rows == 70
    assert resets[0] == 0
    data.close()
    assert data.series.groups == {}
    assert data.run_dir is None
    assert not data.is_open


def test_a_folder_without_a_run_changes_nothing(tmp_path: Path, qtbot: QtBot) -> None:
    data = RunData()
    opened(qtbot, data, write_lines(tmp_path / "run", Shape(steps=10)).dir)
    with pytest.raises(RunNotFoundError):
        data.open(tmp_path / "nowhere")
    assert data.series.rank(0).rows == 10
    data.close()


def test_a_damaged_state_is_told_and_its_curves_are_shown(tmp_path: Path, qtbot: QtBot) -> None:
    store = write_lines(tmp_path / "run", Shape(steps=10))
    store.state_json.write_text("{", encoding="utf-8")
    data = RunData()
    with qtbot.waitSignal(data.failed):
        data.open(store.dir)
    qtbot.waitUntil(lambda: data.series.rank(0).rows == 10)
    assert data.state is None
    data.close()


def test_a_run_without_a_line_is_caught_up(tmp_path: Path, qtbot: QtBot) -> None:
    data = RunData()
    changes = opened(qtbot, data, make_run(tmp_path / "run").dir)
    assert [change.caught_up for change in changes] == [True]
    data.close()
