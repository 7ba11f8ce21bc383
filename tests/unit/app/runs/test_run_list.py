"""The list of runs against real folders."""

from __future__ import annotations

import dataclasses
import os
import random
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from app.runs import run_scanner
from app.runs.run_list import ROW, RunList, RunListModel
from app.runs.run_row import RunRow, progress, reason
from app.runs.run_scanner import RunScanner
from core.config import RunConfig
from core.processes import identity
from core.run_folder.notes import RunNotes, write_notes
from core.run_folder.record import RunRecord
from core.run_folder.run_filter import parse_filter
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry, RunStore
from tests.helpers.synthetic_run import Shape, write_lines

pytestmark = pytest.mark.windows
SOON_MS = 10_000


def add_run(runs_dir: Path, name: str, created: float, **fields: object) -> RunStore:
    folder = runs_dir / name
    folder.mkdir(parents=True)
    store = RunStore(folder)
    store.write_state(dataclasses.replace(RunState(run_id=name, name=name, created=created), **fields))
    return store


def names(rows: list[RunRow]) -> list[str]:
    return [row.path.name for row in rows]


def row_of(path: Path, **fields: object) -> RunRow:
    return RunRow(RunRecord(RunEntry(path, dataclasses.replace(RunState(run_id=path.name), **fields))))


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
    assert model.data(dead, ROW).entry.word == "interrupted"
    assert "step 12" in reason(model.data(dead, ROW).entry)
    assert model.data(half, ROW).entry.word == "damaged"
    assert "state.json" in reason(model.data(half, ROW).entry)
    assert model.data(half, Qt.ItemDataRole.AccessibleTextRole).startswith("half\nDamaged: ")


def test_only_states_that_changed_are_read_again(tmp_path: Path) -> None:
    store = add_run(tmp_path, "run", 1.0, state="finished", step=5)
    scanner = RunScanner(tmp_path)
    assert scanner.scan()[0].entry.state.step == 5
    stamp = store.state_json.stat()
    text = store.state_json.read_text(encoding="utf-8").replace('"step": 5', '"step": 6')
    store.state_json.write_text(text, encoding="utf-8", newline="\n")
    os.utime(store.state_json, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert scanner.scan()[0].entry.state.step == 5  # same time, same size: not read
    os.utime(store.state_json, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 10**9))
    assert scanner.scan()[0].entry.state.step == 6


def test_the_model_follows_any_change_of_the_list() -> None:
    chance = random.Random(1)
    model = RunListModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    for _ in range(60):
        paths = chance.sample([Path(f"/runs/{n}") for n in range(8)], chance.randint(0, 8))
        rows = [row_of(p, step=chance.randint(0, 3), created=100.0 - n) for n, p in enumerate(paths)]
        model.show(rows)
        assert model.rows() == rows and model.entries() == [row.entry for row in rows]
    assert tester.model() is model


def test_a_row_says_its_name_and_how_it_is(tmp_path: Path) -> None:
    store = add_run(tmp_path, "r", 1.0, state="stopped", step=64, total_steps=100, loss=1.8312)
    scanner, model = RunScanner(tmp_path), RunListModel()
    model.show(scanner.scan())
    index = model.index(0)
    assert progress(model.data(index, ROW).entry) == 0.64
    said = model.data(index, Qt.ItemDataRole.AccessibleTextRole).splitlines()
    assert said[0] == "r" and said[1].startswith("Stopped at 64\N{NO-BREAK SPACE}%") and said[2] == "Loss 1.83"
    write_notes(store.dir, RunNotes(name="night", note="Warm-up halved.", tags=("lr",)))
    model.show(scanner.scan())
    assert model.data(index) == "night"
    assert model.data(index, Qt.ItemDataRole.ToolTipRole).splitlines()[-3:] == ["Tags: lr", "Warm-up halved.", "r"]


def test_notes_are_read_again_only_when_their_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = add_run(tmp_path, "r", 1.0)
    write_notes(store.dir, RunNotes(name="one"))
    read: list[Path] = []
    real = run_scanner.notes_of
    monkeypatch.setattr(run_scanner, "notes_of", lambda folder: read.append(folder) or real(folder))
    scanner = RunScanner(tmp_path)
    assert [scanner.scan()[0].record.label for _ in range(3)] == ["one"] * 3
    assert len(read) == 1
    write_notes(store.dir, RunNotes(name="another"))
    assert scanner.scan()[0].record.label == "another" and len(read) == 2
    (store.dir / "notes.json").unlink()
    assert scanner.scan()[0].record.label == "r"


def test_the_list_follows_the_folder(tmp_path: Path, qtbot: QtBot) -> None:
    add_run(tmp_path, "first", 1.0, state="finished")
    runs = RunList()
    with qtbot.waitSignal(runs.listed):
        runs.open(tmp_path)
    assert names(runs.model.rows()) == ["first"]
    with qtbot.waitSignal(runs.listed):
        add_run(tmp_path, "second", 2.0, state="finished")
        runs.refresh()
    assert names(runs.model.rows()) == ["second", "first"]
    runs.close()
    assert not runs.is_open


def test_a_filter_hides_rows_and_an_order_moves_them(tmp_path: Path) -> None:
    model = RunListModel()
    tester = QAbstractItemModelTester(model)
    rows = [
        row_of(tmp_path / name, state="finished", loss=loss, created=float(number))
        for number, (name, loss) in enumerate({"b-run": 2.0, "a-run": 3.0, "other": 1.0}.items())
    ]
    model.show(rows)
    model.set_filter(parse_filter("run loss>1.5"))
    assert names(model.rows()) == ["a-run", "b-run"]
    assert len(model.entries()) == 3, "what is not shown is there"
    model.set_order("name")
    model.set_filter(())
    assert names(model.rows()) == ["a-run", "b-run", "other"]
    model.set_order("best")
    assert names(model.rows()) == ["other", "b-run", "a-run"]
    tester.deleteLater()


def test_the_best_first_reads_what_is_out_of_sight(tmp_path: Path, qtbot: QtBot) -> None:
    """Games by their return, highest first; their losses say the contrary, and nothing was painted."""
    for number, (name, step_s) in enumerate({"few": 0.4, "many": 0.1, "some": 0.2}.items()):
        store = write_lines(tmp_path / name, Shape(steps=20, step_s=step_s), recipe="clstm_ppo", loss=float(number))
        lines = store.metrics.read_bytes()  # what was tokens per second is the return now: 8192 / step_s
        store.metrics.write_bytes(lines.replace(b'"tokens_per_s"', b'"episode_return"'))
    runs = RunList()
    runs.open(tmp_path)
    qtbot.waitUntil(lambda: runs.model.rowCount() == 3, timeout=SOON_MS)
    runs.model.set_order("best")
    qtbot.waitUntil(lambda: names(runs.model.rows()) == ["many", "some", "few"], timeout=SOON_MS)
    runs.close()


def test_settings_are_read_once_they_are_wanted(tmp_path: Path) -> None:
    RunStore.create(tmp_path, RunConfig(lr=0.25))
    scanner = RunScanner(tmp_path)
    (row,) = scanner.scan()
    assert row.record.value("lr") is None
    scanner.wants_settings = True
    (row,) = scanner.scan()
    assert row.record.value("lr") == 0.25
