"""The ledger's file as the window reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.shown_run.ledger_data import LedgerData, read_ledger
from core.errors import StateFileError
from core.ledger.ledger import Ledger
from core.run_folder.store import RunStore


def ledger() -> Ledger:
    dataset = {"path": "a.txt", "size_bytes": 100, "sha256": "0" * 64, "files": 1}
    return Ledger.new(dataset, 100, 40, 10, seed=1, world=2, groups=1, epochs=2)


def test_what_is_claimed_is_in_work(tmp_path: Path) -> None:
    path = tmp_path / "chunk_tracker_state.json"
    live = ledger()
    grant = live.claim(0, 0)
    path.write_text(json.dumps(live.as_dict()), encoding="utf-8")
    snapshot = read_ledger(path)
    assert [block.chunks for block in snapshot.blocks] == [4, 4, 2]
    assert sum(len(block.done) for block in snapshot.blocks) == 0
    going = [(block.block_id, chunk) for block in snapshot.blocks for chunk in block.in_progress]
    assert going == [(grant.block_id, grant.chunk_id)]
    assert snapshot.progress.chunks_total == 10
    assert (snapshot.chunk_size, snapshot.samples_per_block) == (10, 40)


def test_the_window_follows_the_file(tmp_path: Path, qtbot: QtBot) -> None:
    path = RunStore(tmp_path).ledger
    path.write_text(json.dumps(ledger().as_dict()), encoding="utf-8")
    data = LedgerData()
    with qtbot.waitSignal(data.changed):
        data.open(tmp_path)
    assert data.snapshot is not None
    with qtbot.waitSignal(data.failed) as failed:
        path.write_text('{"format": "rankdeck-ledger", "ver', encoding="utf-8")
    assert isinstance(failed.args[0], StateFileError)
    assert data.snapshot is not None  # what was known stays on screen
    with qtbot.waitSignal(data.changed) as gone:
        data.close()
    assert gone.args == [None]


def test_somebody_elses_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chunk_tracker_state.json"
    path.write_text('{"x": 1}', encoding="utf-8")
    with pytest.raises(StateFileError):
        read_ledger(path)
