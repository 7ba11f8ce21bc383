from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.store import Generation, Generations
from core.errors import NewerVersionError, PreflightError, StateFileError
from core.protocol.messages import ChunkDone, CommitStaged, Position, StagedFile

pytestmark = pytest.mark.windows
LEDGER: dict[str, Any] = {"format": "rankdeck-ledger", "note": "as it was"}


@pytest.fixture
def generations(tmp_path: Path) -> Generations:
    (tmp_path / "run").mkdir()
    return Generations(tmp_path / "run" / "generations")


def stage(folder: Path, name: str, content: bytes) -> StagedFile:
    (folder / name).write_bytes(content)
    return StagedFile(name, len(content), hashlib.sha256(content).hexdigest())


def commit(
    generations: Generations,
    step: int = 10,
    val_loss: float | None = None,
    ranks: int = 2,
    diverged: bool = False,
) -> Generation:
    number, folder = generations.begin()
    parts = {}
    for rank in range(ranks):
        files = [stage(folder, f"rng-{rank}.pt", b"r%d" % rank)]
        if rank == 0:
            files.append(stage(folder, "model.safetensors", b"weights of step %d" % step * 100))
        position = Position(step, 4 * step, [ChunkDone(0, 0, 1, step, 40)], [[0, 0, 2, 3]])
        parts[rank] = CommitStaged(number, position, files, val_loss, diverged)
    return generations.commit(number, parts, LEDGER, mode="ddp", world_size=ranks)


def test_a_generation_comes_back_as_it_was_committed(generations: Generations) -> None:
    made = commit(generations, step=12, val_loss=1.25)
    found, damaged = Generations(generations.dir).newest_valid()
    assert found == made
    assert not damaged
    assert (made.number, made.step, made.world_size, made.mode, made.val_loss) == (1, 12, 2, "ddp", 1.25)
    assert {file.name for file in made.files} == {
        "model.safetensors", "rng-0.pt", "rng-1.pt", "chunk_tracker_state.json",
    }  # fmt: skip
    assert made.positions[1] == Position(12, 48, [ChunkDone(0, 0, 1, 12, 40)], [[0, 0, 2, 3]])
    assert made.ledger() == LEDGER


def test_without_a_manifest_it_does_not_exist(generations: Generations) -> None:
    commit(generations)
    number, folder = generations.begin()
    stage(folder, "model.safetensors", b"half")
    assert number == 2
    again = Generations(generations.dir)
    assert [g.number for g in again.list()] == [1]
    found, damaged = again.newest_valid()
    assert found is not None
    assert found.number == 1
    assert not damaged
    assert folder.exists()
    assert again.remove_unfinished() == []
    assert not folder.exists()


def test_the_open_one_is_not_a_leftover(generations: Generations) -> None:
    number, folder = generations.begin()
    generations.remove_unfinished()
    assert folder.exists()
    generations.abandon(number)
    assert not folder.exists()


def test_abandon_leaves_a_committed_one_alone(generations: Generations) -> None:
    made = commit(generations)
    generations.abandon(made.number)
    assert generations.verify(made.number) == made


def test_numbers_are_not_used_twice_by_one_host(generations: Generations) -> None:
    first, _ = generations.begin()
    generations.abandon(first)
    assert generations.begin()[0] == first + 1


def test_numbers_go_on_after_a_restart_and_past_a_gap(generations: Generations) -> None:
    for _ in range(3):
        commit(generations)
    shutil.rmtree(generations.dir / "2")
    assert Generations(generations.dir).begin()[0] == 4


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
def test_a_damaged_one_is_named_and_the_one_before_is_used(generations: Generations, damage: Any, words: str) -> None:
    commit(generations, step=1)
    commit(generations, step=2)
    commit(generations, step=3)
    damage(generations.dir / "3")
    found, damaged = generations.newest_valid()
    assert found is not None
    assert found.number == 2
    assert [item.number for item in damaged] == [3]
    assert words in damaged[0].reason


@pytest.mark.parametrize(
    "change",
    [
        {"step": "x"}, {"step": None}, {"positions": 5}, {"positions": {"a": {}}}, {"files": {"../x": {}}},
        {"files": {"a": {"size": "b"}}}, {"checkpoint": 9}, {"val_loss": []}, {"details": None},
    ],
)  # fmt: skip
def test_a_manifest_with_a_wrong_field_is_damaged(generations: Generations, change: dict[str, Any]) -> None:
    commit(generations)
    path = generations.dir / "1" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change), encoding="utf-8")
    found, damaged = generations.newest_valid()
    assert found is None
    assert [item.number for item in damaged] == [1]


def test_a_manifest_without_a_field_is_damaged(generations: Generations) -> None:
    commit(generations)
    path = generations.dir / "1" / "manifest.json"
    document = json.loads(path.read_bytes())
    del document["positions"]
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(StateFileError, match="lacks 'positions'"):
        generations.verify(1)


def test_a_newer_manifest_is_refused_not_passed_over(generations: Generations) -> None:
    commit(generations)
    commit(generations)
    path = generations.dir / "2" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"version": 2}), encoding="utf-8")
    with pytest.raises(NewerVersionError):
        generations.newest_valid()


def test_what_was_staged_must_be_there(generations: Generations) -> None:
    number, folder = generations.begin()
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
            generations.commit(number, parts, LEDGER, mode="single", world_size=1)
    assert list(generations.list()) == []


def test_prune_keeps_the_last_and_the_best(generations: Generations) -> None:
    for loss in (3.0, 1.0, 2.0, 4.0, None, 2.5):
        commit(generations, val_loss=loss)
    assert generations.prune(2) == [1, 3, 4]
    assert [g.number for g in generations.list()] == [2, 5, 6]
    assert generations.prune(2) == []


def test_a_diverged_one_takes_no_place_is_never_the_best_and_is_passed_over(generations: Generations) -> None:
    for step in (10, 20, 30):
        commit(generations, step, val_loss=2.0)
    made = commit(generations, 40, val_loss=0.5, diverged=True)
    assert made.diverged == (0, 1) and generations.load(4) == made
    assert generations.prune(2) == [1]
    assert [g.number for g in generations.list()] == [2, 3, 4]
    again = Generations(generations.dir)
    found, (passed_over,) = again.newest_valid(known=4)
    assert found is not None and found.number == 3
    assert (passed_over.number, passed_over.diverged_at) == (4, 40) and "not finite" in passed_over.reason
    assert commit(again, 40).number == 5
    assert again.prune(2) == [2, 4], "a newer good one replaces it"


def test_a_manifest_without_the_mark_is_read_as_good(generations: Generations) -> None:
    manifest = commit(generations).folder / "manifest.json"
    values = json.loads(manifest.read_text(encoding="utf-8"))
    del values["diverged"]
    manifest.write_text(json.dumps(values), encoding="utf-8")
    assert generations.load(1).diverged == ()


def test_going_back_sets_newer_ones_aside_and_never_gives_a_number_twice(generations: Generations) -> None:
    for step in (10, 20, 30):
        commit(generations, step)
    generations.go_back(1)
    assert list(generations.set_aside()) == [2, 3]
    again = Generations(generations.dir)
    found, damaged = again.newest_valid(known=3)
    assert found is not None and found.number == 1 and not damaged, "what was set aside is not missing"
    assert commit(again, 15).number == 4
    assert again.prune(1) == [1] and list(again.set_aside()) == [2, 3], "nothing set aside is removed"
    assert again.verify(3).step == 30, "it can be looked at where it lies"
    again.go_back(3)
    assert list(again.set_aside()) == [2, 4]
    found, _ = Generations(generations.dir).newest_valid(known=4)
    assert found is not None and found.number == 3


def test_a_loss_that_is_not_finite_is_never_the_best(generations: Generations) -> None:
    for loss in (float("nan"), 2.0, float("-inf"), 3.0):
        commit(generations, val_loss=loss)
    generations.prune(1)
    assert [g.number for g in generations.list()] == [2, 4]


def test_prune_leaves_what_is_in_use_protected_open_or_damaged(generations: Generations) -> None:
    for _ in range(5):
        commit(generations)
    (generations.dir / "5" / "rng-0.pt").write_bytes(b"damaged")
    resumed = Generations(generations.dir)
    found, _ = resumed.newest_valid()
    assert found is not None
    assert found.number == 4
    _, folder = resumed.begin()
    assert resumed.prune(1, protect=[2]) == [1, 3]
    assert folder.exists()
    assert (generations.dir / "5").exists()


def test_the_one_resumed_from_stays_until_there_is_a_newer_one(generations: Generations) -> None:
    commit(generations)
    resumed = Generations(generations.dir)
    resumed.newest_valid()
    commit(resumed)
    assert resumed.prune(1) == [1]


def test_other_things_in_the_folder_are_passed_over(generations: Generations) -> None:
    commit(generations)
    (generations.dir / "notes.txt").write_bytes(b"mine")
    (generations.dir / "old").mkdir()
    (generations.dir / "007").mkdir()
    generations.remove_unfinished()
    assert generations.begin()[0] == 2
    assert (generations.dir / "old").exists()
    assert (generations.dir / "007").exists()


def test_no_folder_is_no_generation(tmp_path: Path) -> None:
    assert Generations(tmp_path / "none").newest_valid() == (None, [])


def test_a_committed_generation_without_its_manifest_is_named_and_kept(generations: Generations) -> None:
    for _ in range(2):
        commit(generations)
    (generations.dir / "2" / "manifest.json").unlink()
    fresh = Generations(generations.dir)
    found, (lost,) = fresh.newest_valid(known=2)
    assert found is not None and found.number == 1
    assert lost.number == 2 and "manifest.json is missing" in lost.reason
    assert fresh.begin()[0] == 3  # clears away what was never committed, and does not use the number again
    assert (generations.dir / "2").is_dir()


def test_a_committed_generation_whose_folder_is_gone_is_named(generations: Generations) -> None:
    commit(generations)
    shutil.rmtree(generations.dir)
    found, (lost,) = Generations(generations.dir).newest_valid(known=1)
    assert found is None and lost.reason == f"{generations.dir / '1'} is missing, though it was committed."


def test_a_generation_before_the_newest_that_was_pruned_is_not_missed(generations: Generations) -> None:
    for _ in range(3):
        commit(generations)
    generations.prune(1)
    assert Generations(generations.dir).newest_valid(known=2) == (generations.load(3), [])


def test_a_run_folder_that_was_removed_does_not_come_back(generations: Generations) -> None:
    shutil.rmtree(generations.dir.parent)
    with pytest.raises(PreflightError, match="folder or drive is missing"):
        generations.begin()
    assert not generations.dir.parent.exists()
