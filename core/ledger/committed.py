"""The committed half of the ledger: what is in the weights of a whole checkpoint, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from core.errors import ChunkSizeError, RankdeckError, StateFileError
from core.ledger.chunk_grid import ChunkGrid, LedgerSetup
from core.ledger.state_file import CompletedChunk, LedgerFile
from core.protocol.messages import ChunkDone, Position, SkippedBatch

# Epoch and chunk index.
ChunkKey = tuple[int, int]


class LedgerConflictError(RankdeckError):
    """An impossible report of a rank on its chunks. Nothing of it is taken into the ledger."""

    title = "The ranks and the ledger disagree"

    def __init__(self, cause: str) -> None:
        super().__init__(cause, "Resume the run: it continues from its last checkpoint.")


@dataclass(frozen=True, slots=True)
class Partial:
    """A chunk of which the weights hold the first samples, in its shuffled order; claimed at `timestamp`."""

    samples_done: int
    timestamp: float


@dataclass(slots=True)
class Committed:
    """Contents of the newest checkpoint.

    Attributes:
        epoch: The lowest epoch that is not finished.
        done: Completed chunks by epoch and index, in the order of completion; from the epoch before `epoch` on.
        samples_completed: Samples in all completed chunks, over all epochs.
        checkpoint: The checkpoint's number; None before the first.
        skipped: Batches of which nothing went into the weights, of all epochs; chunks count their samples all the same.
    """

    epoch: int = 0
    done: dict[int, dict[int, CompletedChunk]] = field(default_factory=dict)
    partial: dict[ChunkKey, Partial] = field(default_factory=dict)
    samples_completed: int = 0
    checkpoint: int | None = None
    skipped: list[SkippedBatch] = field(default_factory=list)

    @property
    def samples_skipped(self) -> int:
        return sum(batch.samples for batch in self.skipped)

    @property
    def samples_passed(self) -> int:
        return self.samples_completed + sum(p.samples_done for p in self.partial.values())

    @property
    def samples_trained(self) -> int:
        return self.samples_passed - self.samples_skipped

    def copy(self) -> Committed:
        done = {epoch: dict(chunks) for epoch, chunks in self.done.items()}
        return replace(self, done=done, partial=dict(self.partial), skipped=list(self.skipped))

    def is_done(self, epoch: int, index: int) -> bool:
        return epoch < self.epoch or index in self.done.get(epoch, {})

    def take(
        self,
        position: Position,
        setup: LedgerSetup,
        group: int,
        claimed: Mapping[ChunkKey, float],
    ) -> None:
        """Take a replica group's position; a chunk completed before changes nothing. Raises `LedgerConflictError`."""
        grid = setup.grid
        for chunk in position.completed:
            key = self._known(chunk.epoch, chunk.block_id, chunk.chunk_id, grid, claimed)
            if not self.is_done(*key):
                self._check_whole(chunk, key, grid)
                self._complete(key, setup, group, chunk.optimizer_step)
        for item in position.partial:
            if len(item) != 4:
                raise LedgerConflictError(f"A chunk in progress is described by {len(item)} numbers, not 4.")
            epoch, block_id, chunk_id, samples_done = item
            key = self._known(epoch, block_id, chunk_id, grid, claimed)
            before = self.partial.get(key, Partial(0, 0.0))
            if self.is_done(*key) or not before.samples_done <= samples_done <= grid.count(key[1]):
                raise LedgerConflictError(
                    f"{_name(key, grid)} stands at {samples_done} samples; the ledger knows better: "
                    f"{'it is completed' if self.is_done(*key) else f'{before.samples_done} of {grid.count(key[1])}'}."
                )
            if samples_done == grid.count(key[1]):
                self._complete(key, setup, group, position.step)
            elif samples_done:
                self.partial[key] = Partial(samples_done, claimed.get(key, before.timestamp))
        for batch in position.skipped:
            self._skip(batch, grid)

    def turn_epochs(self, chunks: int) -> None:
        while len(self.done.get(self.epoch, {})) == chunks:
            self.epoch += 1
        for old in [epoch for epoch in self.done if epoch < self.epoch - 1]:
            del self.done[old]

    def _known(
        self, epoch: int, block_id: int, chunk_id: int, grid: ChunkGrid, claimed: Mapping[ChunkKey, float]
    ) -> ChunkKey:
        index = grid.index(block_id, chunk_id)
        if index is None or epoch < 0:
            raise LedgerConflictError(f"There is no chunk {chunk_id} in block {block_id}.")
        key = (epoch, index)
        if key not in claimed and key not in self.partial and not self.is_done(*key):
            raise LedgerConflictError(f"{_name(key, grid)} was trained without having been claimed.")
        return key

    def _check_whole(self, chunk: ChunkDone, key: ChunkKey, grid: ChunkGrid) -> None:
        count = grid.count(key[1])
        begun = self.partial.get(key, Partial(0, 0.0)).samples_done
        # A rank may count the samples of this attempt only, when an earlier one trained the chunk's beginning.
        if chunk.samples not in (count, count - begun):
            raise LedgerConflictError(
                f"{_name(key, grid)} is said to be completed after {chunk.samples} of its {count} samples."
            )

    def _skip(self, batch: SkippedBatch, grid: ChunkGrid) -> None:
        """Take a skipped batch, which may be named again: a lost rank's position is part of each later commit."""
        in_order = all(len(run) == 2 and run[0] <= run[1] for run in batch.ranges)
        if not in_order or not batch.ranges or batch.ranges[0][0] < 0 or batch.ranges[-1][1] >= grid.samples:
            raise LedgerConflictError(f"The batch of step {batch.step} was skipped with samples that are not there.")
        if batch not in self.skipped:
            self.skipped.append(batch)

    def _complete(self, key: ChunkKey, setup: LedgerSetup, group: int, optimizer_step: int) -> None:
        (epoch, index), grid = key, setup.grid
        self.partial.pop(key, None)
        count = grid.count(index)
        self.done.setdefault(epoch, {})[index] = CompletedChunk(
            epoch, *grid.ids(index), setup.trainer(group, index, epoch), optimizer_step, count
        )
        self.samples_completed += count


def restored(file: LedgerFile, grid: ChunkGrid) -> Committed:
    """Read the committed part of a state file.

    Raises:
        StateFileError: It names a chunk that the dataset does not have, or contradicts itself.
    """
    committed = Committed(
        epoch=file.current_epoch,
        samples_completed=file.total_samples,
        checkpoint=file.checkpoint,
        skipped=list(file.skipped),
    )
    for chunk in file.completed:
        index = _index(file, grid, chunk.block_id, chunk.chunk_id)
        chunks = committed.done.setdefault(chunk.epoch, {})
        # AI-OS's claims expire, so a slow chunk stands there twice; in our own file nothing may.
        if index in chunks and file.form == "rankdeck":
            raise _contradiction(file, f"chunk {chunk.chunk_id} of block {chunk.block_id} is completed twice")
        chunks[index] = replace(chunk, samples=grid.count(index))
    for item in file.in_progress:
        if item.samples_done == 0:
            # Claimed, but nothing of it is in the weights.
            continue
        index = _index(file, grid, item.block_id, item.chunk_id)
        if item.samples_done >= grid.count(index) or committed.is_done(item.epoch, index):
            raise _contradiction(
                file,
                f"chunk {item.chunk_id} of block {item.block_id} is in progress with {item.samples_done} samples done",
            )
        committed.partial[item.epoch, index] = Partial(item.samples_done, item.timestamp)
    committed.turn_epochs(grid.chunks)
    return committed


def _index(file: LedgerFile, grid: ChunkGrid, block_id: int, chunk_id: int) -> int:
    index = grid.index(block_id, chunk_id)
    if index is None:
        raise ChunkSizeError(
            f"{file.path} names chunk {chunk_id} of block {block_id}; this dataset has {grid.blocks} blocks of up to "
            f"{grid.chunks_per_block} chunks of {grid.chunk_size} samples.",
            "Resume with the dataset and the chunk size that the file was made with.",
        )
    return index


def _contradiction(file: LedgerFile, what: str) -> StateFileError:
    return StateFileError(f"{file.path} contradicts itself: {what}.", "Use a copy of the file from before.")


def _name(key: ChunkKey, grid: ChunkGrid) -> str:
    block_id, chunk_id = grid.ids(key[1])
    return f"Chunk {chunk_id} of block {block_id} in epoch {key[0]}"
