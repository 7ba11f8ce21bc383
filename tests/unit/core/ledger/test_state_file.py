from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import NewerVersionError, StateFileError
from core.ledger.chunk_grid import ChunkGrid, LedgerSetup
from core.ledger.ledger import Ledger
from core.ledger.state_file import CompletedChunk, read_state_file
from core.protocol.messages import Position

DATASET = {"path": "/data/text.txt", "size_bytes": 1234, "sha256": "ab" * 32, "files": 1}
CURRENT: dict[str, Any] = {
    "brain_id": "actv1-base",
    "dataset_name": "wikitext",
    "completed_chunks": [{"block_id": 0, "chunk_id": 3, "gpu_id": 1, "optimizer_step": 500, "steps": 4000}],
    "started_blocks": [0],
    "completed_blocks": [],
    "current_epoch": 0,
    "blocks_this_epoch": [0],
    "total_blocks_in_dataset": None,
    "total_steps": 4000,
    "in_progress_chunks": [{"block_id": 0, "chunk_id": 4, "gpu_id": 0, "timestamp": 1765500000.25}],
}
OLDER: dict[str, Any] = {
    "completed_chunks": [
        {"block_id": 0, "chunk_id": 0, "gpu_id": 0, "step": 125, "samples_trained": 4000},
        {"block_id": 0, "chunk_id": 1, "gpu_id": 1, "step": 250, "true_steps": 4000},
    ],
    "current_epoch": 0,
    "blocks_this_epoch": [],
    "total_steps": 8000,
}


def own() -> dict[str, Any]:
    ledger = Ledger.new(DATASET, 100, 40, 12, 7, 2, 1, 2, run_id="run-1")
    grant = ledger.claim(0, 0)
    ledger.commit({0: Position(5, 12, [], [[0, grant.block_id, grant.chunk_id, 12]])}, 1)
    ledger.claim(0, 1)
    return ledger.as_dict()


def write(folder: Path, document: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "chunk_tracker_state.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def test_our_own_form(tmp_path: Path) -> None:
    file = read_state_file(write(tmp_path, own()))
    assert file.form == "rankdeck"
    assert file.setup == LedgerSetup(ChunkGrid(100, 40, 12), DATASET, 7, 2, 1, 2, "run-1")
    assert (file.chunk_size, file.checkpoint) == (12, 1)
    assert file.completed == (CompletedChunk(0, 2, 0, 0, 5, 12),)
    assert [item.samples_done for item in file.in_progress] == [0]
    assert Ledger.from_file(file).progress().chunks_done == 1


def test_ai_os_current_form(tmp_path: Path) -> None:
    file = read_state_file(write(tmp_path / "datasets" / "wikitext_cs4000", CURRENT))
    assert file.form == "aios"
    assert file.chunk_size == 4000
    assert file.completed == (CompletedChunk(0, 0, 3, 1, 500, 4000),)
    assert file.in_progress[0].timestamp == 1765500000.25
    assert (file.total_samples, file.dataset_name) == (4000, "wikitext")


def test_ai_os_older_form(tmp_path: Path) -> None:
    file = read_state_file(write(tmp_path / "my brain", OLDER))
    assert file.form == "aios"
    assert file.chunk_size is None
    assert file.completed == (CompletedChunk(0, 0, 0, 0, 125, 4000), CompletedChunk(0, 0, 1, 1, 250, 4000))
    assert file.total_samples == 8000
    assert file.in_progress == ()


@pytest.mark.parametrize("key", ["total_true_steps", "total_samples_trained"])
def test_older_totals(tmp_path: Path, key: str) -> None:
    document = {name: value for name, value in OLDER.items() if name != "total_steps"} | {key: 77}
    assert read_state_file(write(tmp_path, document)).total_samples == 77


@pytest.mark.parametrize("name", ["a_cs0", "a_cs", "cs40", "a_cs40_b"])
def test_a_folder_that_names_no_chunk_size(tmp_path: Path, name: str) -> None:
    assert read_state_file(write(tmp_path / name, CURRENT)).chunk_size is None


@pytest.mark.parametrize("base", ["own", "current", "older"])
@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.99])
def test_a_file_cut_in_half_is_refused(tmp_path: Path, base: str, part: float) -> None:
    text = json.dumps({"own": own(), "current": CURRENT, "older": OLDER}[base])
    path = write(tmp_path, text[: int(len(text) * part)])
    before = path.read_bytes()
    with pytest.raises(StateFileError, match=r"cut off|is empty"):
        read_state_file(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("base", "change", "words"),
    [
        ("current", {"completed_chunks": [{"block_id": -1, "chunk_id": 0}]}, "completed_chunks[0].block_id is -1"),
        ("current", {"completed_chunks": [{"block_id": 0}]}, "completed_chunks[0].chunk_id is missing"),
        ("current", {"current_epoch": -1}, "current_epoch is -1"),
        ("current", {"current_epoch": 2**70}, "current_epoch is"),
        ("current", {"total_steps": None, "total_true_steps": "x"}, "total_true_steps holds text"),
        ("current", {"blocks_this_epoch": [0, -2]}, "blocks_this_epoch[1] is -2"),
        ("current", {"started_blocks": 3}, "started_blocks is 3"),
        ("current", {"in_progress_chunks": [{"block_id": 0, "chunk_id": 0, "timestamp": "x"}]}, "timestamp holds text"),
        ("older", {"completed_chunks": [{"block_id": 0, "chunk_id": 0, "step": -5}]}, "step is -5"),
        ("own", {"chunk_size": 0}, "chunk_size is 0; it must be a whole number of 1 or more"),
        ("own", {"lanes": 3}, "replica groups cannot be shared by 2 ranks"),
        ("own", {"format": "another"}, "says format 'another'"),
        ("own", {"version": "1"}, "which is not a version"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, base: str, change: dict[str, Any], words: str) -> None:
    document = {"own": own(), "current": CURRENT, "older": OLDER}[base] | change
    with pytest.raises(StateFileError) as caught:
        read_state_file(write(tmp_path, document))
    assert words in caught.value.cause
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("document", [[], 5, "text", None, {}, {"step": 1}, {"loss": [1]}])
def test_another_kind_of_file_is_refused(tmp_path: Path, document: object) -> None:
    with pytest.raises(StateFileError):
        read_state_file(write(tmp_path, json.dumps(document)))


@pytest.mark.parametrize("name", sorted(own()))
def test_our_own_form_lacks_nothing_in_silence(tmp_path: Path, name: str) -> None:
    document = own()
    del document[name]
    optional = {
        "brain_id", "dataset_name", "total_blocks_in_dataset", "epochs", "checkpoint", "samples_trained",
        "skipped_batches",
    }  # fmt: skip
    if name in optional:
        assert read_state_file(write(tmp_path, document)).form == "rankdeck"
    else:
        with pytest.raises(StateFileError):
            read_state_file(write(tmp_path, document))


def test_a_newer_version_is_refused_as_such(tmp_path: Path) -> None:
    with pytest.raises(NewerVersionError):
        read_state_file(write(tmp_path, own() | {"version": 3}))


def test_keys_of_ai_os_that_are_not_known_are_named_and_ignored(tmp_path: Path) -> None:
    chunk = {**CURRENT["completed_chunks"][0], "worker": "a"}
    extra = {"version": 99, "format": "aios", "samples_per_block": 7, "completed_chunks": [chunk]}
    file = read_state_file(write(tmp_path, CURRENT | extra))
    assert file.form == "aios" and file.completed == (CompletedChunk(0, 0, 3, 1, 500, 4000),)
    (note,) = file.notes
    assert note.endswith("does not know and ignores: 'format', 'samples_per_block', 'version', 'worker'.")
    many = CURRENT | {f"key{n}": n for n in range(1000)}
    (note,) = read_state_file(write(tmp_path, many)).notes
    assert "and 995 more" in note


def test_an_ordinary_file_of_ai_os_has_no_notes(tmp_path: Path) -> None:
    chunks = [{**CURRENT["completed_chunks"][0], "chunk_id": n} for n in range(3)]
    for document in (CURRENT | {"completed_chunks": chunks}, OLDER):
        assert read_state_file(write(tmp_path, document)).notes == ()


def test_what_ai_os_lists_twice_is_said_and_counts_once(tmp_path: Path) -> None:
    chunk = CURRENT["completed_chunks"][0]
    claim = CURRENT["in_progress_chunks"][0]
    document = CURRENT | {
        "completed_chunks": [chunk, chunk, {**chunk, "chunk_id": 5}, {**chunk, "chunk_id": 5, "gpu_id": 0}],
        "in_progress_chunks": [{**claim, "chunk_id": 3}, claim, {**claim, "gpu_id": 1}],
    }
    file = read_state_file(write(tmp_path, document))
    assert [(item.chunk_id, item.gpu_id) for item in file.completed] == [(3, 1), (5, 1)]
    assert [item.chunk_id for item in file.in_progress] == [4]
    (note,) = file.notes
    assert note.endswith("anywhere: chunk 3 of block 0, chunk 5 of block 0, chunk 4 of block 0.")


def test_a_second_epoch_of_ai_os_is_said(tmp_path: Path) -> None:
    document = CURRENT | {"current_epoch": 1, "blocks_this_epoch": [], "completed_blocks": [0, 4]}
    file = read_state_file(write(tmp_path, document))
    assert file.completed[0].epoch == 0
    empty, epoch = file.notes
    assert "in epoch 2" in epoch and "all others for epoch 1" in epoch
    assert "none of their chunks" in empty and "block 4" in empty


def test_a_file_that_was_cut_off_names_line_and_column(tmp_path: Path) -> None:
    text = json.dumps(CURRENT, indent=1)
    path = write(tmp_path, text[: text.index("optimizer_step")])
    with pytest.raises(StateFileError) as caught:
        read_state_file(path)
    line = text[: text.index("optimizer_step")].count("\n") + 1
    assert f"{path} was cut off" in caught.value.cause and f"line {line}, column" in caught.value.cause


def test_a_damaged_file_beside_checkpoints_says_where_a_whole_copy_is(tmp_path: Path) -> None:
    path = write(tmp_path, '{"format": "rank')
    for number in (2, 10):
        write(tmp_path / "checkpoints" / str(number), own())
        (tmp_path / "checkpoints" / str(number) / "manifest.json").write_bytes(b"{}")
    write(tmp_path / "checkpoints" / "11", own())  # no manifest: does not exist
    with pytest.raises(StateFileError) as caught:
        read_state_file(path)
    assert "checkpoint 10 holds a whole copy" in caught.value.next_step
    assert path.exists()
