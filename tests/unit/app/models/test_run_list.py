"""The list of runs against real folders."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from PySide6.QtCore import QPersistentModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from app.models.run_list import ENTRY, RunList, RunListModel, RunScanner, progress, reason
from core.processes import identity
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry, RunStore

pytestmark = pytest.mark.windows


def add_run(runs_dir: Path, name: str, created: float, **fields: object) -> RunStore:
    folder = runs_dir / name
    folder.mkdir(parents=True)
    store = RunStore(folder)
    store.write_state(dataclasses.replace(RunState(run_id=name, name=name, created=created), **fields))
    return store


def names(entries: list[RunEntry]) -> list[str]:
    return [entry.path.name for entry in entries]


def test_live_runs_first_then_the_newest(tmp_path: Path) -> None:
    add_run(tmp_path, "old", 1.0, state="finished")
    add_run(tmp_path, "new", 3.0, state="stopped")
    add_run(tmp_path, "live", 2.0, state="training", host=identity.own())
    (tmp_path / "no run").mkdir()
    (tmp_path / "a file").write_text("x", encoding="utf-8")
    assert names(RunScanner(tmp_path).scan()) == ["live", "new", "old"]
    assert RunScanner(tmp_path / "nowhere").scan() == []


def test_a_damaged_and_an_interrupted_run_say_why(tmp_path: Path) -> None:
    add_run(tmp_path, "dead", 2.0, state="training", host=identity.ProcessId(2**22 - 3, 5.0), step=12)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "state.json").write_text('{"format": "rankd', encoding="utf-8")
    model = RunListModel()
    model.show(RunScanner(tmp_path).scan())
    rows = {model.data(model.index(row)): row for row in range(model.rowCount())}
    dead, half = model.index(rows["dead"]), model.index(rows["half"])
    assert model.data(dead, ENTRY).word == "interrupted"
    assert "step 12" in reason(model.data(dead, ENTRY))
    assert model.data(half, ENTRY).word == "damaged"
    assert "state.json" in reason(model.data(half, ENTRY))
    assert model.data(half, Qt.ItemDataRole.AccessibleTextRole).startswith("half, damaged")


def test_only_states_that_changed_are_read_again(tmp_path: Path) -> None:
    store = add_run(tmp_path, "run", 1.0, state="finished", step=5)
    scanner = RunScanner(tmp_path)
    assert scanner.scan()[0].state.step == 5
    stamp = store.state_json.stat()
    text = store.state_json.read_text(encoding="utf-8").replace('"step": 5', '"step": 6')
    store.state_json.write_text(text, encoding="utf-8", newline="\n")
    os.utime(store.state_json, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert scanner.scan()[0].state.step == 5  # same time, same size: not read
    os.utime(store.state_json, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 10**9))
    assert scanner.scan()[0].state.step == 6


@pytest.mark.parametrize("seed", range(4))
def test_the_model_follows_any_change_of_the_list(seed: int) -> None:
    import random

    chance = random.Random(seed)
    model = RunListModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    kept: QPersistentModelIndex | None = None
    for _ in range(60):
        paths = chance.sample([Path(f"/runs/{n}") for n in range(8)], chance.randint(0, 8))
        if kept is not None and kept.isValid() and chance.random() < 0.7:
            keep = model.data(kept, ENTRY).path
            paths = [*[p for p in paths if p != keep], keep]
            chance.shuffle(paths)
        entries = [RunEntry(p, RunState(run_id=p.name, name=p.name, step=chance.randint(0, 3))) for p in paths]
        watched = model.data(kept, ENTRY).path if kept is not None and kept.isValid() else None
        model.show(entries)
        assert model.entries() == entries
        if watched in paths:
            assert model.data(kept, ENTRY).path == watched
        if entries and (kept is None or not kept.isValid()):
            kept = QPersistentModelIndex(model.index(0))
    assert tester.model() is model


def test_progress_and_loss() -> None:
    model = RunListModel()
    model.show([RunEntry(Path("/r"), RunState(run_id="r", state="stopped", step=64, total_steps=100, loss=1.8312))])
    index = model.index(0)
    assert progress(model.data(index, ENTRY)) == 0.64
    assert model.data(index, Qt.ItemDataRole.AccessibleTextRole) == "r, stopped, 64%, loss 1.83"


def test_the_list_follows_the_folder(tmp_path: Path, qtbot: QtBot) -> None:
    add_run(tmp_path, "first", 1.0, state="finished")
    runs = RunList()
    with qtbot.waitSignal(runs.listed):
        runs.open(tmp_path)
    assert names(runs.model.entries()) == ["first"]
    with qtbot.waitSignal(runs.listed):
        add_run(tmp_path, "second", 2.0, state="finished")
        runs.refresh()
    assert names(runs.model.entries()) == ["second", "first"]
    runs.close()
    assert not runs.is_open
