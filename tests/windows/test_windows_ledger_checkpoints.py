"""Sharing violations: Windows refuses to replace, or to remove, a file that is open."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest

from core.checkpoints.store import CheckpointStore
from core.errors import PreflightError
from core.files.atomic import explain, read_json, replace_with_retry, write_atomic
from core.ledger.ledger import Ledger
from core.ledger.state_file import read_state_file
from core.metrics.columns import ColumnsWriter
from core.metrics.metrics_file import MetricsWriter
from core.protocol.messages import CommitStaged, Position, StagedFile

pytestmark = [
    pytest.mark.windows,
    pytest.mark.skipif(sys.platform != "win32", reason="only Windows refuses to replace a file that is open"),
]


def make_ledger() -> Ledger:
    return Ledger.new({"path": "t", "size_bytes": 1, "sha256": "0", "files": 1}, 10, 10, 5, 1, 1, 1, 1)


def test_the_state_file_is_replaced_as_soon_as_its_reader_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "chunk_tracker_state.json"
    ledger = make_ledger()
    write_atomic(path, json.dumps(ledger.as_dict()))
    ledger.claim(0, 0)
    with path.open("rb") as holder:
        refused = False
        try:
            replace_with_retry(_copy(path, "other"), path, timeout_s=0.0)
        except PermissionError as error:
            refused = True
            assert explain(error, "x").next_step
        assert refused, "the file could be replaced while it was open: this test proves nothing here"
        letting_go = threading.Timer(0.5, holder.close)
        letting_go.start()
        write_atomic(path, json.dumps(ledger.as_dict()))
        letting_go.join()
    assert len(read_state_file(path).in_progress) == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == ["chunk_tracker_state.json", "other"]


def test_a_file_that_is_never_let_go_is_said_and_left_whole(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_atomic(path, "[1]")
    with path.open("rb"), pytest.raises(PreflightError):
        write_atomic(path, "[2]", timeout_s=0.2)
    assert read_json(path) == [1]
    assert [item.name for item in tmp_path.iterdir()] == ["state.json"]
    write_atomic(path, "[3]")
    assert read_json(path) == [3]


def test_a_reader_meets_whole_files_while_they_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_atomic(path, json.dumps(["a"] * 5000))
    done = threading.Event()
    reads: list[int] = []

    def read() -> None:
        while not done.is_set():
            reads.append(len(read_json(path)))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(20):
            write_atomic(path, json.dumps(["b"] * 5000), durable=False)
    finally:
        done.set()
        reader.join(timeout=60)
    assert set(reads) == {5000}


def test_an_old_checkpoint_that_is_open_is_removed_later(tmp_path: Path) -> None:
    checkpoints = CheckpointStore(tmp_path / "checkpoints")
    for step in (1, 2):
        number, folder = checkpoints.begin()
        (folder / "model.safetensors").write_bytes(b"w")
        staged = StagedFile("model.safetensors", 1, "50e721e49c013f00c62cf59f2163542a9d8df02464efeb615d31051b0fddc326")
        part = CommitStaged(number, Position(step), [staged])
        checkpoints.commit(number, {0: part}, make_ledger().as_dict(), mode="single", devices=["cpu:0"])
    first = tmp_path / "checkpoints" / "1"
    with (first / "model.safetensors").open("rb"):
        assert checkpoints.prune(1) == []
        assert [g.number for g in checkpoints.list()] == [2]
        assert checkpoints.remove_unfinished() == [first]
        assert checkpoints.begin()[0] == 3
    assert checkpoints.remove_unfinished() == []
    assert not first.exists()
    found, damaged = checkpoints.newest_valid()
    assert found is not None
    assert found.number == 2
    assert not damaged


def test_a_reader_of_the_index_does_not_stop_the_columns(tmp_path: Path) -> None:
    line = json.dumps({"ts": 1.0, "event": "step", "rank": 0, "attempt": 1, "step": 1})
    index = tmp_path / "columns" / "index.json"
    with MetricsWriter(tmp_path / "metrics.jsonl") as metrics:
        columns = ColumnsWriter(tmp_path)
        with index.open("rb"):
            columns.append([line.encode()], [json.loads(line)], metrics.append([line.encode()]))
            columns.flush()
            assert columns.problem is None
        columns.flush()
    assert read_json(index)["groups"]["rank0"]["rows"] == 1


def _copy(path: Path, name: str) -> Path:
    copy = path.with_name(name)
    copy.write_bytes(path.read_bytes())
    return copy
