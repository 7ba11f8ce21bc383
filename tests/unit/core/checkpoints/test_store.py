from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.store import Checkpoint, CheckpointStore
from core.errors import NewerVersionError, PreflightError, StateFileError
from core.protocol.messages import ChunkDone, CommitStaged, Position, StagedFile

LEDGER: dict[str, Any] = {"format": "rankdeck-ledger", "note": "as it was"}


@pytest.fixture
def checkpoints(tmp_path: Path) -> CheckpointStore:
    (tmp_path / "run").mkdir()
    return CheckpointStore(tmp_path / "run" / "checkpoints")


def stage(folder: Path, name: str, content: bytes) -> StagedFile:
    (folder / name).write_bytes(content)
    return StagedFile(name, len(content), hashlib.sha256(content).hexdigest())


def commit(
    checkpoints: CheckpointStore,
    step: int = 10,
    val_loss: float | None = None,
    ranks: int = 2,
    diverged: bool = False,
) -> Checkpoint:
    number, folder = checkpoints.begin()
    parts = {}
    for rank in range(ranks):
        files = [stage(folder, f"rng-{rank}.pt", b"r%d" % rank)]
        if rank == 0:
            files.append(stage(folder, "model.safetensors", b"weights of step %d" % step * 100))
        position = Position(step, 4 * step, [ChunkDone(0, 0, 1, step, 40)], [[0, 0, 2, 3]])
        parts[rank] = CommitStaged(number, position, files, val_loss, diverged)
    return checkpoints.commit(number, parts, LEDGER, mode="ddp", devices=[f"cpu:{rank}" for rank in range(ranks)])


def test_a_checkpoint_comes_back_as_it_was_committed(checkpoints: CheckpointStore) -> None:
    made = commit(checkpoints, step=12, val_loss=1.25)
    found, damaged = CheckpointStore(checkpoints.dir).newest_valid()
    assert found == made
    assert not damaged
    assert (made.number, made.step, made.world_size, made.mode, made.val_loss) == (1, 12, 2, "ddp", 1.25)
    assert {file.name for file in made.files} == {
        "model.safetensors", "rng-0.pt", "rng-1.pt", "chunk_tracker_state.json",
    }  # fmt: skip
    assert made.positions[1] == Position(12, 48, [ChunkDone(0, 0, 1, 12, 40)], [[0, 0, 2, 3]])
    assert made.ledger() == LEDGER


def test_without_a_manifest_it_does_not_exist(checkpoints: CheckpointStore) -> None:
    commit(checkpoints)
    number, folder = checkpoints.begin()
    stage(folder, "model.safetensors", b"half")
    assert number == 2
    again = CheckpointStore(checkpoints.dir)
    assert [g.number for g in again.list()] == [1]
    found, damaged = again.newest_valid()
    assert found is not None
    assert found.number == 1
    assert not damaged
    assert folder.exists()
    assert again.remove_unfinished() == []
    assert not folder.exists()


def test_the_open_one_is_not_a_leftover(checkpoints: CheckpointStore) -> None:
    number, folder = checkpoints.begin()
    checkpoints.remove_unfinished()
    assert folder.exists()
    checkpoints.abandon(number)
    assert not folder.exists()


def test_abandon_leaves_a_committed_one_alone(checkpoints: CheckpointStore) -> None:
    made = commit(checkpoints)
    checkpoints.abandon(made.number)
    assert checkpoints.verify(made.number) == made


def test_numbers_are_not_used_twice_by_one_host(checkpoints: CheckpointStore) -> None:
    first, _ = checkpoints.begin()
    checkpoints.abandon(first)
    assert checkpoints.begin()[0] == first + 1


def test_numbers_go_on_after_a_restart_and_past_a_gap(checkpoints: CheckpointStore) -> None:
    for _ in range(3):
        commit(checkpoints)
    shutil.rmtree(checkpoints.dir / "2")
    assert CheckpointStore(checkpoints.dir).begin()[0] == 4


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda folder: (folder / "rng-1.pt").write_bytes(b"longer"), "has 6 bytes; 2 were written"),
        (lambda folder: (folder / "rng-1.pt").write_bytes(b"r2"), "SHA-256 differs"),
        (lambda folder: (folder / "chunk_tracker_state.json").write_bytes(b"{}"), "were written"),
        (lambda folder: (folder / "manifest.json").write_bytes(b'{"format": "rank'), "cut off"),
        (lambda folder: (folder / "manifest.json").write_bytes(b""), "is empty"),
        (lambda folder: (folder / "manifest.json").write_bytes(b"[]"), "a list instead of an object"),
    ],
)
def test_a_damaged_one_is_named_and_the_one_before_is_used(
    checkpoints: CheckpointStore, damage: Any, words: str
) -> None:
    commit(checkpoints, step=1)
    commit(checkpoints, step=2)
    commit(checkpoints, step=3)
    damage(checkpoints.dir / "3")
    found, damaged = checkpoints.newest_valid()
    assert found is not None
    assert found.number == 2
    assert [item.number for item in damaged] == [3]
    assert words in damaged[0].reason


@pytest.mark.parametrize(
    "change",
    [
        {"step": "x"}, {"step": None}, {"positions": 5}, {"positions": {"a": {}}}, {"files": {"../x": {}}},
        {"files": {"a": {"size": "b"}}}, {"checkpoint": 9}, {"val_loss": []}, {"devices": None},
    ],
)  # fmt: skip
def test_a_manifest_with_a_wrong_field_is_damaged(checkpoints: CheckpointStore, change: dict[str, Any]) -> None:
    commit(checkpoints)
    path = checkpoints.dir / "1" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change), encoding="utf-8")
    found, damaged = checkpoints.newest_valid()
    assert found is None
    assert [item.number for item in damaged] == [1]


def test_a_newer_manifest_is_refused_not_passed_over(checkpoints: CheckpointStore) -> None:
    commit(checkpoints)
    commit(checkpoints)
    path = checkpoints.dir / "2" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"version": 2}), encoding="utf-8")
    with pytest.raises(NewerVersionError):
        checkpoints.newest_valid()


def test_what_was_staged_must_be_there(checkpoints: CheckpointStore) -> None:
    number, folder = checkpoints.begin()
    good = stage(folder, "a", b"abc")
    for files in (
        [StagedFile("missing", 1, "0")],
        [StagedFile("a", 4, good.sha256)],
        [StagedFile("../a", 3, good.sha256)],
        [StagedFile("a:b", 3, good.sha256)],
        [StagedFile("manifest.json", 3, good.sha256)],
        [good, StagedFile("a", 3, "other")],
    ):
        with pytest.raises(StateFileError):
            parts = {0: CommitStaged(number, Position(1), files)}
            checkpoints.commit(number, parts, LEDGER, mode="single", devices=["cpu:0"])
    assert list(checkpoints.list()) == []


def test_prune_keeps_the_last_and_what_is_protected(checkpoints: CheckpointStore) -> None:
    for loss in (3.0, 1.0, 2.0, 4.0, None, 2.5):
        commit(checkpoints, val_loss=loss)
    assert checkpoints.prune(2, protect=[2]) == [1, 3, 4]
    assert [g.number for g in checkpoints.list()] == [2, 5, 6]
    assert checkpoints.prune(2, protect=[2]) == []


def test_a_diverged_one_takes_no_place_and_is_passed_over(checkpoints: CheckpointStore) -> None:
    for step in (10, 20, 30):
        commit(checkpoints, step, val_loss=2.0)
    made = commit(checkpoints, 40, val_loss=0.5, diverged=True)
    assert made.diverged == (0, 1) and checkpoints.load(4) == made
    assert checkpoints.prune(2) == [1]
    assert [g.number for g in checkpoints.list()] == [2, 3, 4]
    again = CheckpointStore(checkpoints.dir)
    found, (passed_over,) = again.newest_valid(known=4)
    assert found is not None and found.number == 3
    assert (passed_over.number, passed_over.diverged_at) == (4, 40) and "not finite" in passed_over.reason
    assert commit(again, 40).number == 5
    assert again.prune(2) == [2, 4], "a newer good one replaces it"


def test_a_manifest_without_the_mark_is_read_as_good(checkpoints: CheckpointStore) -> None:
    manifest = commit(checkpoints).folder / "manifest.json"
    values = json.loads(manifest.read_text(encoding="utf-8"))
    del values["diverged"]
    manifest.write_text(json.dumps(values), encoding="utf-8")
    assert checkpoints.load(1).diverged == ()


def test_going_back_sets_newer_ones_aside_and_never_gives_a_number_twice(checkpoints: CheckpointStore) -> None:
    for step in (10, 20, 30):
        commit(checkpoints, step)
    checkpoints.go_back(1)
    assert list(checkpoints.set_aside()) == [2, 3]
    again = CheckpointStore(checkpoints.dir)
    found, damaged = again.newest_valid(known=3)
    assert found is not None and found.number == 1 and not damaged, "what was set aside is not missing"
    assert commit(again, 15).number == 4
    assert again.prune(1) == [1] and list(again.set_aside()) == [2, 3], "nothing set aside is removed"
    assert again.verify(3).step == 30, "it can be looked at where it lies"
    again.go_back(3)
    assert list(again.set_aside()) == [2, 4]
    found, _ = CheckpointStore(checkpoints.dir).newest_valid(known=4)
    assert found is not None and found.number == 3


def test_prune_leaves_what_is_in_use_protected_open_or_damaged(checkpoints: CheckpointStore) -> None:
    for _ in range(5):
        commit(checkpoints)
    (checkpoints.dir / "5" / "rng-0.pt").write_bytes(b"damaged")
    resumed = CheckpointStore(checkpoints.dir)
    found, _ = resumed.newest_valid()
    assert found is not None
    assert found.number == 4
    _, folder = resumed.begin()
    assert resumed.prune(1, protect=[2]) == [1, 3]
    assert folder.exists()
    assert (checkpoints.dir / "5").exists()


def test_the_one_resumed_from_stays_until_there_is_a_newer_one(checkpoints: CheckpointStore) -> None:
    commit(checkpoints)
    resumed = CheckpointStore(checkpoints.dir)
    resumed.newest_valid()
    commit(resumed)
    assert resumed.prune(1) == [1]


def test_other_things_in_the_folder_are_passed_over(checkpoints: CheckpointStore) -> None:
    commit(checkpoints)
    (checkpoints.dir / "notes.txt").write_bytes(b"mine")
    (checkpoints.dir / "old").mkdir()
    (checkpoints.dir / "007").mkdir()
    checkpoints.remove_unfinished()
    assert checkpoints.begin()[0] == 2
    assert (checkpoints.dir / "old").exists()
    assert (checkpoints.dir / "007").exists()


def test_no_folder_is_no_checkpoint(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path / "none").newest_valid() == (None, [])


def test_a_committed_checkpoint_without_its_manifest_is_named_and_kept(checkpoints: CheckpointStore) -> None:
    for _ in range(2):
        commit(checkpoints)
    (checkpoints.dir / "2" / "manifest.json").unlink()
    fresh = CheckpointStore(checkpoints.dir)
    found, (lost,) = fresh.newest_valid(known=2)
    assert found is not None and found.number == 1
    assert lost.number == 2 and "manifest.json is missing" in lost.reason
    assert fresh.begin()[0] == 3  # clears away what was never committed, and does not use the number again
    assert (checkpoints.dir / "2").is_dir()


def test_a_committed_checkpoint_whose_folder_is_gone_is_named(checkpoints: CheckpointStore) -> None:
    commit(checkpoints)
    shutil.rmtree(checkpoints.dir)
    found, (lost,) = CheckpointStore(checkpoints.dir).newest_valid(known=1)
    assert found is None and lost.reason == f"{checkpoints.dir / '1'} is missing, though it was committed."


def test_a_checkpoint_before_the_newest_that_was_pruned_is_not_missed(checkpoints: CheckpointStore) -> None:
    for _ in range(3):
        commit(checkpoints)
    checkpoints.prune(1)
    assert CheckpointStore(checkpoints.dir).newest_valid(known=2) == (checkpoints.load(3), [])


def test_a_run_folder_that_was_removed_does_not_come_back(checkpoints: CheckpointStore) -> None:
    shutil.rmtree(checkpoints.dir.parent)
    with pytest.raises(PreflightError, match="folder or drive is missing"):
        checkpoints.begin()
    assert not checkpoints.dir.parent.exists()
