"""The ledger as the window shows it and as its file holds it."""

from __future__ import annotations

from typing import Any

import pytest

from core.ledger.chunk_grid import ChunkGrid, LedgerSetup
from core.ledger.committed import Committed, Partial
from core.ledger.progress import BlockProgress, LedgerView
from core.ledger.state_file import ChunkInProgress, CompletedChunk

GRID = ChunkGrid(samples=25, samples_per_block=10, chunk_size=4)  # chunks of 4 4 2 | 4 4 2 | 4 1


def chunk(epoch: int, index: int, rank: int = 0) -> CompletedChunk:
    return CompletedChunk(epoch, *GRID.ids(index), rank, 7, GRID.count(index))


def view(committed: Committed, *claimed: ChunkInProgress, epochs: int | None = 2, path: str = "x.txt") -> LedgerView:
    return LedgerView(LedgerSetup(GRID, {"path": path}, 5, 2, 1, epochs, "run"), committed, claimed)


def whole(epoch: int) -> dict[int, CompletedChunk]:
    return {index: chunk(epoch, index) for index in range(GRID.chunks)}


def test_progress_counts_this_epochs_chunks_and_every_sample() -> None:
    done = {0: {0: chunk(0, 0), 1: chunk(0, 1), 2: chunk(0, 2), 6: chunk(0, 6)}}
    partial = {(0, 3): Partial(3, 0.0), (1, 0): Partial(2, 0.0)}
    shown = view(Committed(0, done, partial, 14), ChunkInProgress(0, 1, 0, 0, 0.0, 3)).progress()
    assert (shown.chunks_done, shown.chunks_total) == (4, 8)
    assert (shown.chunks_in_progress, shown.samples_done, shown.samples_total) == (1, 17, 25)
    assert (shown.samples_trained, shown.epoch, shown.epochs, shown.finished) == (19, 0, 2, False)


@pytest.mark.parametrize(
    ("reached", "epochs", "shown", "finished"),
    [(0, 2, 0, False), (1, 2, 1, False), (2, 2, 1, True), (3, 2, 1, True), (7, None, 7, False)],
)
def test_a_finished_ledger_shows_its_last_epoch(reached: int, epochs: int | None, shown: int, finished: bool) -> None:
    progress = view(Committed(reached), epochs=epochs).progress()
    assert (progress.epoch, progress.finished) == (shown, finished)


def test_blocks_name_the_rank_of_each_chunk_of_this_epoch() -> None:
    done = {0: whole(0), 1: {4: chunk(1, 4, rank=1)}}
    claims = (ChunkInProgress(1, 2, 1, 0, 0.0, 0), ChunkInProgress(2, 0, 0, 1, 0.0, 0))
    assert view(Committed(1, done), *claims).blocks() == [
        BlockProgress(0, 3, {}, {}),
        BlockProgress(1, 3, {1: 1}, {}),
        BlockProgress(2, 2, {}, {1: 0}),
    ]


def test_the_file_starts_with_the_keys_of_ai_os() -> None:
    claim = ChunkInProgress(0, 2, 0, 1, 9.5, 0)
    first = view(Committed(0, {0: {0: chunk(0, 0, rank=1)}}, samples_completed=4, checkpoint=3), claim).as_dict()
    assert first["completed_chunks"] == [
        {"block_id": 0, "chunk_id": 0, "gpu_id": 1, "optimizer_step": 7, "steps": 4, "epoch": 0}
    ]
    assert first["in_progress_chunks"] == [
        {"block_id": 2, "chunk_id": 0, "gpu_id": 1, "timestamp": 9.5, "samples_done": 0, "epoch": 0}
    ]
    assert (first["started_blocks"], first["completed_blocks"], first["blocks_this_epoch"]) == ([0, 2], [], [])
    assert (first["total_steps"], first["total_blocks_in_dataset"], first["current_epoch"]) == (4, 3, 0)
    assert (first["lanes"], first["world_size"], first["checkpoint"], first["brain_id"]) == (1, 2, 3, "run")


def test_after_the_first_epoch_every_block_was_completed_once() -> None:
    done = {1: {**{index: chunk(1, index) for index in range(3)}}, 0: whole(0)}
    keys = view(Committed(1, done)).as_dict()
    assert keys["started_blocks"] == keys["completed_blocks"] == [0, 1, 2]
    assert keys["blocks_this_epoch"] == [0]
    assert [item["epoch"] for item in keys["completed_chunks"]] == [0] * 8 + [1] * 3


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/data/my corpus.v2.txt", "my_corpus_v2"),
        (r"C:\data\corpus" + "\\", "corpus"),
        ("/data/" + "x" * 60 + ".txt", "x" * 50),
        ("Größe.csv", "Größe"),
        ("", None),
    ],
)
def test_a_datasets_name_is_made_as_ai_os_makes_it(path: str, name: str | None) -> None:
    keys: dict[str, Any] = view(Committed(), path=path).as_dict()
    assert keys["dataset_name"] == name
