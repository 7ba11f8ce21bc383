"""What is in the weights: taken from ranks' positions only as far as it can be true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import ChunkSizeError, StateFileError
from core.ledger.chunk_grid import ChunkGrid, LedgerSetup
from core.ledger.committed import Committed, LedgerConflictError, Partial, restored
from core.ledger.state_file import ChunkInProgress, CompletedChunk, LedgerFile
from core.protocol.messages import ChunkDone, Position, SkippedBatch

GRID = ChunkGrid(samples=25, samples_per_block=10, chunk_size=4)  # chunks of 4 4 2 | 4 4 2 | 4 1
SETUP = LedgerSetup(GRID, {}, seed=7, world=2, groups=1)
CLAIMED = {(0, index): 100.0 + index for index in range(3)}


def taken(position: Position, committed: Committed | None = None) -> Committed:
    made = committed or Committed()
    made.take(position, SETUP, 0, CLAIMED)
    return made


def done(block: int, chunk: int, samples: int, epoch: int = 0) -> ChunkDone:
    return ChunkDone(epoch, block, chunk, 7, samples)


def test_a_completed_chunk_has_its_owner_and_its_samples() -> None:
    made = taken(Position(9, 6, [done(0, 1, 4), done(0, 2, 2)], []))
    assert made.done == {0: {1: CompletedChunk(0, 0, 1, 1, 7, 4), 2: CompletedChunk(0, 0, 2, 0, 7, 2)}}
    assert (made.samples_completed, made.samples_trained, made.is_done(0, 1), made.is_done(0, 0)) == (6, 6, True, False)
    taken(Position(9, 6, [done(0, 1, 4)], []), made)
    assert made.samples_completed == 6, "named again, it changes nothing"


def test_a_begun_chunk_counts_as_far_as_it_was_trained() -> None:
    made = taken(Position(9, 3, [], [[0, 0, 0, 3], [0, 0, 1, 0]]))
    assert made.partial == {(0, 0): Partial(3, 100.0)} and made.samples_trained == 3
    taken(Position(11, 4, [], [[0, 0, 0, 4]]), made)
    assert made.partial == {} and made.done[0][0].optimizer_step == 11


def test_a_chunk_completed_after_a_resume_may_count_the_rest_only() -> None:
    for samples in (4, 1):
        made = taken(Position(9, 3, [], [[0, 0, 0, 3]]))
        assert taken(Position(9, 4, [done(0, 0, samples)], []), made).samples_trained == 4


def test_skipped_samples_are_passed_and_not_trained() -> None:
    skipped = SkippedBatch(0, 3, [[1, 2], [5, 5]])
    made = taken(Position(9, 5, [done(0, 1, 4)], [[0, 0, 0, 3]], [skipped]))
    assert (made.samples_passed, made.samples_skipped, made.samples_trained) == (7, 3, 4)
    other = made.copy()
    taken(Position(10, 5, [], [[0, 0, 0, 3]], [skipped]), made)
    assert made.skipped == [skipped], "named again, it changes nothing"
    other.skipped.clear()
    assert made.skipped == [skipped]


@pytest.mark.parametrize("ranges", [[], [[3]], [[4, 3]], [[-1, 0]], [[0, 25]]])
def test_skipped_samples_that_are_not_there_are_refused(ranges: list[list[int]]) -> None:
    with pytest.raises(LedgerConflictError, match="samples that are not there"):
        taken(Position(9, 3, [], [], [SkippedBatch(0, 3, ranges)]))


@pytest.mark.parametrize(
    ("position", "cause"),
    [
        (Position(1, 4, [done(5, 0, 4)], []), "no chunk 0 in block 5"),
        (Position(1, 4, [done(0, 0, 4, epoch=-1)], []), "no chunk 0 in block 0"),
        (Position(1, 4, [done(1, 0, 4)], []), "Chunk 0 of block 1 in epoch 0 was trained without having been claimed"),
        (Position(1, 4, [done(0, 0, 3)], []), "completed after 3 of its 4 samples"),
        (Position(1, 4, [], [[0, 0, 0]]), "described by 3 numbers, not 4"),
        (Position(1, 4, [], [[0, 0, 0, 5]]), "stands at 5 samples; the ledger knows better: 0 of 4"),
        (Position(1, 4, [done(0, 0, 4)], [[0, 0, 0, 2]]), "it is completed"),
    ],
)
def test_what_cannot_be_is_refused(position: Position, cause: str) -> None:
    with pytest.raises(LedgerConflictError, match=cause) as caught:
        taken(position)
    assert caught.value.title and caught.value.next_step


def test_a_chunk_does_not_go_backwards() -> None:
    made = taken(Position(9, 3, [], [[0, 0, 0, 3]]))
    with pytest.raises(LedgerConflictError, match="stands at 2 samples; the ledger knows better: 3 of 4"):
        taken(Position(9, 2, [], [[0, 0, 0, 2]]), made)


def test_finished_epochs_are_passed_and_only_the_newest_is_kept() -> None:
    whole = {index: CompletedChunk(0, *GRID.ids(index), 0, 1, 1) for index in range(GRID.chunks)}
    made = Committed(done={0: dict(whole), 1: dict(whole), 2: {0: whole[0]}})
    made.turn_epochs(GRID.chunks)
    assert (made.epoch, set(made.done)) == (2, {1, 2})
    assert made.is_done(0, 5) and made.is_done(1, 5) and not made.is_done(2, 5)


def state_file(**changes: Any) -> LedgerFile:
    chunk, begun = CompletedChunk(0, 0, 0, 1, 7, 99), ChunkInProgress(0, 1, 0, 1, 5.0, 3)
    values: dict[str, Any] = {
        "path": Path("x.json"), "form": "rankdeck", "completed": (chunk,), "in_progress": (begun,),
        "current_epoch": 0, "total_blocks": 3, "total_samples": 4, "checkpoint": 6,
    }  # fmt: skip
    return LedgerFile(**values | changes)


def test_a_state_file_is_taken_up_with_the_grids_own_counts() -> None:
    made = restored(state_file(), GRID)
    assert made.done == {0: {0: CompletedChunk(0, 0, 0, 1, 7, 4)}}
    assert made.partial == {(0, 3): Partial(3, 5.0)}
    assert (made.checkpoint, made.samples_completed, made.samples_trained) == (6, 4, 7)


def test_a_chunk_that_was_only_claimed_is_not_in_the_weights() -> None:
    claimed = ChunkInProgress(0, 1, 0, 1, 5.0, 0)
    assert restored(state_file(in_progress=(claimed,)), GRID).partial == {}


def test_ai_os_may_name_a_chunk_twice_and_our_own_file_may_not() -> None:
    twice = (CompletedChunk(0, 0, 0, 1, 7, 4), CompletedChunk(0, 0, 0, 2, 9, 4))
    assert restored(state_file(form="aios", completed=twice), GRID).done[0][0].gpu_id == 2
    with pytest.raises(StateFileError, match="chunk 0 of block 0 is completed twice"):
        restored(state_file(completed=twice), GRID)


@pytest.mark.parametrize(
    ("changes", "error", "cause"),
    [
        ({"completed": (CompletedChunk(0, 2, 2, 0, 1, 4),)}, ChunkSizeError, "names chunk 2 of block 2; this dataset"),
        ({"in_progress": (ChunkInProgress(0, 9, 0, 0, 0.0, 1),)}, ChunkSizeError, "chunk 0 of block 9"),
        ({"in_progress": (ChunkInProgress(0, 1, 0, 0, 0.0, 4),)}, StateFileError, "in progress with 4 samples done"),
        ({"in_progress": (ChunkInProgress(0, 0, 0, 0, 0.0, 1),)}, StateFileError, "in progress with 1 samples done"),
    ],
)
def test_a_file_that_contradicts_itself_or_the_dataset_is_refused(
    changes: dict[str, Any], error: type[Exception], cause: str
) -> None:
    with pytest.raises(error, match=cause):
        restored(state_file(**changes), GRID)


def test_an_epoch_whose_last_chunk_is_in_the_file_is_over() -> None:
    whole = tuple(CompletedChunk(0, *GRID.ids(index), 0, 1, 1) for index in range(GRID.chunks))
    assert restored(state_file(completed=whole, in_progress=()), GRID).epoch == 1
