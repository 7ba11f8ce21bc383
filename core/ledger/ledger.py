"""The ledger: the chunks of each epoch that are in the weights, and those that are claimed.

A dataset is cut into blocks, a block into chunks (`core.ledger.chunk_grid`). A *replica group* is an independent
consumer of chunks: ranks that train in step share one, ranks that train independently have one each. It *claims* its
next chunk and is granted it at once (`core.ledger.claims`). A chunk counts as *completed* only when a checkpoint
holds all its samples (`core.ledger.committed`); chunks lost in a crash are granted again.

The order of chunks depends on seed and epoch alone, and the owner of chunk i in epoch e is rank (i + e) mod world. So a
resumed run trains the same samples in the same order as one that never stopped. Each chunk is granted to one replica
group alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.errors import StateFileError
from core.ledger.chunk_grid import ChunkGrid, LedgerSetup
from core.ledger.claims import Claims
from core.ledger.committed import ChunkKey, Committed, LedgerConflictError, restored
from core.ledger.progress import BlockProgress, LedgerProgress, LedgerView
from core.ledger.state_file import FILE_NAME, ChunkInProgress, LedgerFile, parse_state
from core.protocol.messages import Grant, Position


class Ledger:
    """The single record of trained data. The run host holds the only live one. Nothing here touches the disk.

    `claim` hands out chunks; `preview` returns the state file of a commit; `commit` makes it so.
    """

    def __init__(self, setup: LedgerSetup, committed: Committed | None = None) -> None:
        self.setup = setup
        self._committed = committed or Committed()
        self.release()

    # making one

    @classmethod
    def new(
        cls,
        dataset: Mapping[str, Any],
        samples: int,
        samples_per_block: int,
        chunk_size: int,
        seed: int,
        world: int,
        groups: int,
        epochs: int | None = None,
        run_id: str | None = None,
    ) -> Ledger:
        grid = ChunkGrid(samples, samples_per_block, chunk_size)
        return cls(LedgerSetup(grid, dict(dataset), seed, world, groups, epochs, run_id))

    @classmethod
    def from_dict(cls, document: Any, path: Path = Path(FILE_NAME)) -> Ledger:
        """Read the ledger that `as_dict` gave. Open claims in it are dropped: only commits count.

        Raises:
            StateFileError: As `core.ledger.state_file.read_state_file`, or numbers that contradict each other.
        """
        return cls.from_file(parse_state(document, path))

    @classmethod
    def from_file(cls, file: LedgerFile) -> Ledger:
        if file.setup is None:
            raise StateFileError(
                f"{file.path} is AI-OS's: it does not say how the dataset is cut into samples.",
                "Resume it with the dataset it was made with: rankdeck resume PATH.",
            )
        return cls(file.setup, restored(file, file.setup.grid))

    def import_aios(self, file: LedgerFile) -> None:
        """Continue from AI-OS's state file: its completed chunks are not trained again. Implies `release`.

        Raises:
            StateFileError: Another chunk size or number of blocks, or a chunk that this dataset does not have.
        """
        grid = self.setup.grid
        if file.chunk_size is not None and file.chunk_size != grid.chunk_size:
            raise _differs("chunk size", f"{file.chunk_size} samples", f"{grid.chunk_size} samples", file.path)
        if file.total_blocks is not None and file.total_blocks != grid.blocks:
            raise _differs("number of blocks", str(file.total_blocks), str(grid.blocks), file.path)
        self._committed = restored(file, grid)
        self.release()

    # claims

    def claim(self, group: int, sequence: int) -> Grant:
        """The replica group's `sequence`-th chunk since the ledger was made, restored or released.

        The same question has the same answer, so that every rank of a replica group may ask for itself. An epoch's
        chunks come before the next epoch's; in it, those that are partly trained come first, with `offset` set.

        Raises:
            LedgerConflictError: There is no such replica group, a sequence was skipped, or it was committed long ago.
        """
        return self._claims.claim(group, sequence)

    def release(self) -> None:
        """Forget all claims: the ranks are gone, and new ones start from the last committed checkpoint."""
        self._claims = Claims(self.setup, self._committed, time.time)

    def change(self, **changes: Any) -> None:
        """Share the remaining work in another way, by fields of `LedgerSetup`; implies `release`."""
        self.setup = replace(self.setup, **changes)
        self.release()

    # commits

    def preview(self, positions: Mapping[int, Position], checkpoint: int | None = None) -> dict[str, Any]:
        """The state file after a `commit` with the same arguments; changes nothing, and raises as `commit`."""
        return self._view(self._promoted(positions, checkpoint)).as_dict()

    def commit(self, positions: Mapping[int, Position], checkpoint: int | None = None) -> None:
        """Count the contents of a checkpoint as trained. Called when its manifest lies on disk.

        Raises:
            LedgerConflictError: A chunk that was not claimed, is said to be complete without all its samples, or has
                gone backwards; or ranks of one replica group that disagree. Nothing is changed then.
        """
        self._committed = self._promoted(positions, checkpoint)
        self._claims.commit(self._committed)

    def _promoted(self, positions: Mapping[int, Position], checkpoint: int | None) -> Committed:
        groups: dict[int, Position] = {}
        for rank, position in sorted(positions.items()):
            group = self.setup.group_for(rank)
            if not 0 <= group < self.setup.groups or groups.setdefault(group, position) != position:
                raise LedgerConflictError(f"Rank {rank} is not where the others of its replica group are in the data.")
        # A position that is refused must leave nothing changed.
        after = self._committed.copy()
        after.checkpoint = self._committed.checkpoint if checkpoint is None else checkpoint
        for group, position in groups.items():
            after.take(position, self.setup, group, self._claims.claimed(group))
        after.turn_epochs(self.setup.grid.chunks)
        return after

    # what it says

    @property
    def checkpoint(self) -> int | None:
        return self._committed.checkpoint

    @property
    def samples_trained(self) -> int:
        return self._committed.samples_trained

    @property
    def first_untouched_epoch(self) -> int:
        """The first epoch of which, as of all after it, committed weights hold nothing."""
        begun = [*self._committed.done, *(epoch for epoch, _ in self._committed.partial)]
        return max(self._committed.epoch, *(epoch + 1 for epoch in begun), 0)

    def samples_left(self) -> list[list[int]]:
        """Samples left for each replica group in each epoch that is begun and not finished, by epoch."""
        setup, left = self.setup, []
        for epoch in range(self._committed.epoch, self.first_untouched_epoch):
            if setup.epochs is not None and epoch >= setup.epochs:
                break
            done = self._committed.done.get(epoch, {})
            counts = [0] * setup.groups
            for index in range(setup.grid.chunks):
                if index not in done:
                    partial = self._committed.partial.get((epoch, index))
                    group = setup.group_for(setup.owner(index, epoch))
                    counts[group] += setup.grid.count(index) - (partial.samples_done if partial else 0)
            left.append(counts)
        return left

    def check_same(
        self, dataset: Mapping[str, Any], chunk_size: int, samples_per_block: int, samples: int | None = None
    ) -> None:
        """Refuse another dataset, or another cut of it, than the ledger's; raises `StateFileError`."""
        grid = self.setup.grid
        if chunk_size != grid.chunk_size:
            raise _differs("chunk size", f"{grid.chunk_size} samples", f"{chunk_size} samples")
        if samples_per_block != grid.samples_per_block:
            raise _differs("block size", f"{grid.samples_per_block} samples", f"{samples_per_block} samples")
        for key in ("sha256", "size_bytes"):
            before, now = self.setup.dataset.get(key), dataset.get(key)
            if before is not None and now is not None and before != now:
                raise _differs("dataset", _describe_dataset(self.setup.dataset), _describe_dataset(dataset))
        if samples is not None and samples != grid.samples:
            raise _differs("number of samples", str(grid.samples), str(samples))

    def progress(self) -> LedgerProgress:
        return self._view(self._committed).progress()

    def blocks(self) -> list[BlockProgress]:
        return self._view(self._committed).blocks()

    def as_dict(self) -> dict[str, Any]:
        """The state file: AI-OS's keys with their meaning, and ours. Holds this epoch and the one before."""
        return self._view(self._committed).as_dict()

    def _view(self, committed: Committed) -> LedgerView:
        return LedgerView(self.setup, committed, self._in_progress(committed))

    def _in_progress(self, committed: Committed) -> list[ChunkInProgress]:
        setup = self.setup
        open_chunks: dict[ChunkKey, tuple[int, float]] = {
            (epoch, index): (setup.owner(index, epoch), partial.timestamp)
            for (epoch, index), partial in committed.partial.items()
        }
        for group in range(setup.groups):
            for (epoch, index), claimed_at in self._claims.claimed(group).items():
                if not committed.is_done(epoch, index):
                    open_chunks[epoch, index] = setup.trainer(group, index, epoch), claimed_at
        chunks = []
        for (epoch, index), (rank, timestamp) in sorted(open_chunks.items()):
            partial = committed.partial.get((epoch, index))
            done = partial.samples_done if partial else 0
            chunks.append(ChunkInProgress(epoch, *setup.grid.ids(index), rank, timestamp, done))
        return chunks


def _differs(what: str, before: str, now: str, path: Path | None = None) -> StateFileError:
    where = "The ledger" if path is None else str(path)
    return StateFileError(
        f"The {what} has changed: {where} has {before}, this run has {now}.",
        "Resume with the original settings, or start a new run.",
    )


def _describe_dataset(dataset: Mapping[str, Any]) -> str:
    return f"{dataset.get('path')} ({dataset.get('size_bytes')} bytes, SHA-256 {str(dataset.get('sha256'))[:12]}…)"
