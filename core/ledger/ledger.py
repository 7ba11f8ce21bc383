"""The ledger: which chunks of which epoch are in the weights, who works on which, and who gets the next.

A dataset is cut into blocks, a block into chunks (`core.ledger.chunk_grid`). A *replica group* is an independent
consumer of chunks: ranks that train in step share one, ranks that train independently have one each. It *claims* its
next chunk and is granted it at once. A chunk counts as *completed* only when a checkpoint
holds all its samples; what a crash took away from the weights is granted again.

Everything is deterministic: the order of chunks depends on seed and epoch alone, the owner of chunk i in epoch e
is rank (i + e) mod world. So a run that was resumed trains the same samples in the same order as one that never
stopped. Only with `stealing` does it depend on who is faster: there a replica group that is done with its own chunks of
an epoch takes some of another's. Each chunk is still granted to one replica group alone.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.errors import StateFileError
from core.ledger.chunk_grid import ChunkGrid
from core.ledger.committed import ChunkKey, Committed, LedgerConflictError, restored
from core.ledger.pool import EpochPool
from core.ledger.progress import BlockProgress, LedgerProgress, LedgerView
from core.ledger.state_file import (
    FILE_NAME,
    ChunkInProgress,
    CompletedChunk,
    LedgerFile,
    parse_state,
    read_state_file,
)
from core.protocol.messages import Grant, Position

__all__ = [
    "BlockProgress",
    "ChunkInProgress",
    "CompletedChunk",
    "Ledger",
    "LedgerConflictError",
    "LedgerFile",
    "LedgerProgress",
    "read_state_file",
]

_ORDERS_KEPT: Final = 4
"""Shuffled epochs in memory. Groups may be epochs apart, and an order of a million chunks takes 36 MB."""
_PRIOR_CHUNKS: Final = 2
"""Chunks that each group is taken to have claimed before it has: one chunk alone says nothing of a group's speed."""


class Ledger:
    """The single record of what is trained. The run host holds the only live one.

    Made by `new`, `from_dict` or `from_file`. `claim` hands out chunks; `preview` says what the state
    file would say after a commit; `commit` makes it so. Nothing here touches the disk.

    Args:
        grid: How the dataset is cut.
        dataset: The dataset's identity (`core.data.dataset.DatasetIdentity.as_dict`).
        seed: Orders the chunks of each epoch.
        world: Ranks.
        groups: 1 when all ranks train in step, else as many as ranks.
        epochs: How often the dataset is trained; None for no limit.
        run_id: Stands in the state file as AI-OS's `brain_id`.

    Attributes:
        stealing: Replica groups that are done early take from the others. Not in the state file: the run sets it.

    Raises:
        ValueError: Numbers that cannot go together.
    """

    def __init__(
        self,
        grid: ChunkGrid,
        *,
        dataset: Mapping[str, Any],
        seed: int,
        world: int,
        groups: int,
        epochs: int | None = None,
        run_id: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.grid = grid
        self.dataset = dict(dataset)
        self.seed = seed
        self.run_id = run_id
        self._clock = clock
        self._committed = Committed()
        self._orders: dict[int, list[int]] = {}
        self.stealing = False
        self._set_groups(world, groups, epochs)

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
        """A ledger in which nothing is trained yet; see the class for the arguments."""
        grid = ChunkGrid(samples, samples_per_block, chunk_size)
        return cls(grid, dataset=dataset, seed=seed, world=world, groups=groups, epochs=epochs, run_id=run_id)

    @classmethod
    def from_dict(cls, document: Any, path: Path = Path(FILE_NAME)) -> Ledger:
        """The ledger that `as_dict` gave. Open claims in it are dropped: only commits count.

        Args:
            document: The parsed JSON.
            path: Where it came from, for the words of an error.

        Raises:
            StateFileError: As `core.ledger.state_file.read_state_file`, or numbers that contradict each other.
        """
        return cls.from_file(parse_state(document, path))

    @classmethod
    def from_file(cls, file: LedgerFile) -> Ledger:
        """The ledger of a state file in Rankdeck's own form; raises as `from_dict`."""
        if (
            file.form != "rankdeck"
            or file.samples is None
            or file.samples_per_block is None
            or file.chunk_size is None
            or file.seed is None
            or file.world_size is None
            or file.groups is None
            or file.dataset is None
        ):
            raise StateFileError(
                f"{file.path} is AI-OS's: it does not say how the dataset is cut into samples.",
                "Resume it with the dataset it was made with: rankdeck resume PATH.",
            )
        if file.groups not in (1, file.world_size):
            raise StateFileError(
                f"{file.path}: {file.groups} replica groups cannot be shared by {file.world_size} ranks.",
                "Use a copy of the file from before.",
            )
        ledger = cls.new(
            file.dataset,
            file.samples,
            file.samples_per_block,
            file.chunk_size,
            file.seed,
            file.world_size,
            file.groups,
            file.epochs or None,
            file.brain_id,
        )
        ledger._committed = restored(file, ledger.grid)
        return ledger

    def import_aios(self, file: LedgerFile) -> None:
        """Continues where AI-OS's state file stands: its completed chunks are not trained again. Implies `release`.

        Raises:
            StateFileError: The chunk size, or the number of blocks, is not the one the file was made with, or it
                names a chunk that this dataset does not have.
        """
        grid = self.grid
        if file.chunk_size is not None and file.chunk_size != grid.chunk_size:
            raise _differs("chunk size", f"{file.chunk_size} samples", f"{grid.chunk_size} samples", file.path)
        if file.total_blocks is not None and file.total_blocks != grid.blocks:
            raise _differs("number of blocks", str(file.total_blocks), str(grid.blocks), file.path)
        self._committed = restored(file, grid)
        self.release()

    # claims

    def group_for(self, rank: int) -> int:
        """The replica group that a rank belongs to."""
        return rank if self.groups > 1 else 0

    def owner(self, index: int, epoch: int) -> int:
        """The rank that a chunk belongs to in an epoch; it moves on with each, so that every rank sees every chunk."""
        return (index + epoch) % self.world

    def claim(self, group: int, sequence: int) -> Grant:
        """The replica group's `sequence`-th chunk since the ledger was made, restored or released.

        The same question has the same answer, so that every rank of a replica group may ask for itself. An epoch's
        chunks come before the next epoch's; in it, those that are partly trained come first, with `offset` set.

        Raises:
            LedgerConflictError: There is no such replica group, a sequence was skipped, or it was committed long ago.
        """
        if not 0 <= group < self.groups:
            raise LedgerConflictError(f"A rank claimed for replica group {group}, but there are {self.groups}.")
        # Grants stay until a commit holds them, so ranks of one group that ask at different times get the same chunk.
        grants, first = self._grants[group], self._first_sequence[group]
        position = sequence - first
        if 0 <= position < len(grants):
            return grants[position]
        if position < 0:
            raise LedgerConflictError(
                f"Replica group {group} claimed chunk {sequence} again, which is committed already."
            )
        if position > len(grants) and not self._exhausted[group]:
            raise LedgerConflictError(
                f"Replica group {group} claimed chunk {sequence} before chunk {first + len(grants)}."
            )
        found = next(self._upcoming[group], None)
        if found is None:
            self._exhausted[group] = True
            return Grant(sequence, exhausted=True)
        epoch, index = found
        partial = self._committed.partial.get(found)
        block_id, chunk_id = self.grid.ids(index)
        grant = Grant(
            sequence=sequence,
            epoch=epoch,
            block_id=block_id,
            chunk_id=chunk_id,
            start=self.grid.start(index),
            count=self.grid.count(index),
            offset=partial.samples_done if partial else 0,
        )
        self._handed[group] += grant.count - grant.offset
        grant = replace(grant, expected=self._expected(group))
        grants.append(grant)
        self._claimed[group][found] = self._clock()
        return grant

    def _expected(self, group: int) -> int:
        """Samples that a group may expect after its newest chunk, by its part in what was claimed; -1 if not known."""
        if not self.stealing or self.epochs is None:
            return -1
        left = self.epochs * self.grid.samples - self._trained_before - sum(self._handed)
        prior = _PRIOR_CHUNKS * self.grid.chunk_size
        # Additive smoothing: equal parts at first, each group's own speed once it has claimed more than the prior.
        return round(left * (self._handed[group] + prior) / (sum(self._handed) + self.groups * prior))

    def release(self) -> None:
        """Forgets all claims: the ranks are gone, and new ones start from the last committed checkpoint."""
        self._claimed: list[dict[ChunkKey, float]] = [{} for _ in range(self.groups)]
        self._handed = [0] * self.groups
        self._trained_before = self._committed.samples_trained
        self._pools: dict[int, EpochPool] = {}
        self._epochs_at = [self._committed.epoch] * self.groups
        self._grants: list[deque[Grant]] = [deque() for _ in range(self.groups)]
        self._first_sequence = [0] * self.groups
        self._exhausted = [False] * self.groups
        self._upcoming = [self._chunks_for(group) for group in range(self.groups)]

    def rescale(self, world: int, groups: int) -> None:
        """Shares the work that is left among other ranks; implies `release`. Nothing committed is trained again.

        Raises:
            ValueError: The groups cannot be shared by that number of ranks.
        """
        self._set_groups(world, groups, self.epochs)

    def limit_epochs(self, epochs: int | None) -> None:
        """Sets how often the dataset is trained in all; implies `release`."""
        self._set_groups(self.world, self.groups, epochs)

    def _set_groups(self, world: int, groups: int, epochs: int | None) -> None:
        if world < 1 or groups not in (1, world):
            raise ValueError(f"{groups} replica groups cannot be shared by {world} ranks")
        if epochs is not None and epochs < 1:
            raise ValueError(f"{epochs} epochs are none")
        self.world = world
        self.groups = groups
        self.epochs = epochs
        self.release()

    def _chunks_for(self, group: int) -> Iterator[ChunkKey]:
        """Epoch and index of every chunk that a replica group still has to train, in order."""
        epoch = self._committed.epoch
        while self.epochs is None or epoch < self.epochs:
            self._epochs_at[group] = epoch
            pool = self._pool(epoch)
            while (index := pool.take(group, stealing=self.stealing)) is not None:
                yield epoch, index
            epoch += 1
        self._epochs_at[group] = epoch

    def _pool(self, epoch: int) -> EpochPool:
        """What is unclaimed of an epoch: made when the first group comes to it, kept until the last one has left it."""
        if epoch not in self._pools:
            done = self._committed.done.get(epoch, {})
            queues: list[list[int]] = [[] for _ in range(self.groups)]
            for index in self._order(epoch):
                if index not in done:
                    queues[0 if self.groups == 1 else self.owner(index, epoch)].append(index)
            # Partly trained chunks come first, else many of them could be open at a later commit. Only earlier attempts
            # left any: nothing of this epoch was claimed in this one.
            begun = [[index for index in queue if (epoch, index) in self._committed.partial] for queue in queues]
            rest = [[index for index in queue if (epoch, index) not in self._committed.partial] for queue in queues]
            self._pools[epoch] = EpochPool(first + then for first, then in zip(begun, rest, strict=True))
        for old in [number for number in self._pools if number < min(self._epochs_at)]:
            del self._pools[old]
        return self._pools[epoch]

    def _order(self, epoch: int) -> list[int]:
        """Every chunk's index, shuffled for an epoch."""
        if epoch not in self._orders:
            order = list(range(self.grid.chunks))
            # A text seed goes through SHA-512, not through hash(), which differs from process to process
            # (https://docs.python.org/3/library/random.html#random.seed): every resume has the same order.
            random.Random(f"{self.seed}/{epoch}").shuffle(order)
            self._orders[epoch] = order
            for old in sorted(self._orders)[:-_ORDERS_KEPT]:
                del self._orders[old]
        return self._orders[epoch]

    # commits

    def preview(self, positions: Mapping[int, Position], checkpoint: int | None = None) -> dict[str, Any]:
        """The state file as it will be once `commit` is called with the same arguments; changes nothing.

        Raises:
            LedgerConflictError: As `commit`.
        """
        return self._view(self._promoted(positions, checkpoint)).as_dict()

    def commit(self, positions: Mapping[int, Position], checkpoint: int | None = None) -> None:
        """Takes what a checkpoint holds as trained. Called when its manifest lies on disk.

        Args:
            positions: Each rank's (or replica group's) position; ranks of one replica group say the same.
            checkpoint: The checkpoint's number.

        Raises:
            LedgerConflictError: A position that cannot be: a chunk that was not claimed, is said to be complete
                without all its samples, or has gone backwards. Nothing is changed then.
        """
        self._committed = self._promoted(positions, checkpoint)
        for group, grants in enumerate(self._grants):
            # From the left only: sequence numbers count without gaps, also where a later chunk is done before.
            while grants and self._is_done(grants[0]):
                grant = grants.popleft()
                self._first_sequence[group] += 1
                self._claimed[group].pop(self._key(grant), None)

    def _promoted(self, positions: Mapping[int, Position], checkpoint: int | None) -> Committed:
        groups: dict[int, Position] = {}
        for rank, position in sorted(positions.items()):
            group = self.group_for(rank)
            if not 0 <= group < self.groups or groups.setdefault(group, position) != position:
                raise LedgerConflictError(f"Rank {rank} is not where the others of its replica group are in the data.")
        after = self._committed.copy()  # a position that is refused must leave nothing changed
        after.checkpoint = self._committed.checkpoint if checkpoint is None else checkpoint
        for group, position in groups.items():
            after.take(position, self.grid, self._claimed[group], self._trainer(group))
        after.turn_epochs(self.grid.chunks)
        return after

    def _trainer(self, group: int) -> Callable[[int, int], int]:
        """The rank that a chunk of this replica group counts as trained by."""
        return self.owner if self.groups == 1 else lambda _index, _epoch: group

    def _key(self, grant: Grant) -> ChunkKey:
        return grant.epoch, grant.block_id * self.grid.chunks_per_block + grant.chunk_id

    def _is_done(self, grant: Grant) -> bool:
        return self._committed.is_done(*self._key(grant))

    # what it says

    @property
    def checkpoint(self) -> int | None:
        """The checkpoint that `completed_chunks` belongs to."""
        return self._committed.checkpoint

    @property
    def samples_trained(self) -> int:
        """Samples that committed weights have seen, over all epochs."""
        return self._committed.samples_trained

    @property
    def first_untouched_epoch(self) -> int:
        """The first epoch of which, as of all after it, committed weights hold nothing."""
        begun = [*self._committed.done, *(epoch for epoch, _ in self._committed.partial)]
        return max(self._committed.epoch, *(epoch + 1 for epoch in begun), 0)

    def samples_left(self, group: int) -> list[int]:
        """Samples that a replica group still has to train in each epoch that is begun and not finished."""
        left = []
        for epoch in range(self._committed.epoch, self.first_untouched_epoch):
            if self.epochs is not None and epoch >= self.epochs:
                break
            done = self._committed.done.get(epoch, {})
            count = 0
            for index in range(self.grid.chunks):
                if index not in done and (self.groups == 1 or self.owner(index, epoch) == group):
                    partial = self._committed.partial.get((epoch, index))
                    count += self.grid.count(index) - (partial.samples_done if partial else 0)
            left.append(count)
        return left

    def check_same(
        self, dataset: Mapping[str, Any], chunk_size: int, samples_per_block: int, samples: int | None = None
    ) -> None:
        """Makes sure that a resumed run cuts the same dataset in the same way.

        Raises:
            StateFileError: Something differs; both values are named.
        """
        if chunk_size != self.grid.chunk_size:
            raise _differs("chunk size", f"{self.grid.chunk_size} samples", f"{chunk_size} samples")
        if samples_per_block != self.grid.samples_per_block:
            raise _differs("block size", f"{self.grid.samples_per_block} samples", f"{samples_per_block} samples")
        for key in ("sha256", "size_bytes"):
            before, now = self.dataset.get(key), dataset.get(key)
            if before is not None and now is not None and before != now:
                raise _differs("dataset", _describe_dataset(self.dataset), _describe_dataset(dataset))
        if samples is not None and samples != self.grid.samples:
            raise _differs("number of samples", str(self.grid.samples), str(samples))

    def progress(self) -> LedgerProgress:
        """How far the work is."""
        return self._view(self._committed).progress()

    def blocks(self) -> list[BlockProgress]:
        """Every block of the current epoch, chunk by chunk."""
        return self._view(self._committed).blocks()

    def as_dict(self) -> dict[str, Any]:
        """The state file: AI-OS's keys with their meaning, and ours. Holds this epoch and the one before."""
        return self._view(self._committed).as_dict()

    def _view(self, committed: Committed) -> LedgerView:
        return LedgerView(
            grid=self.grid,
            dataset=self.dataset,
            seed=self.seed,
            world=self.world,
            groups=self.groups,
            epochs=self.epochs,
            run_id=self.run_id,
            committed=committed,
            in_progress=self._in_progress(committed),
        )

    def _in_progress(self, committed: Committed) -> list[ChunkInProgress]:
        since: dict[ChunkKey, float] = {key: partial.timestamp for key, partial in committed.partial.items()}
        holders: dict[ChunkKey, int] = {}
        for group, claimed in enumerate(self._claimed):
            for key, at in claimed.items():
                if not committed.is_done(*key):
                    since[key] = at
                    holders[key] = self._trainer(group)(key[1], key[0])
        chunks = []
        for (epoch, index), timestamp in sorted(since.items()):
            partial = committed.partial.get((epoch, index))
            done = partial.samples_done if partial else 0
            holder = holders.get((epoch, index), self.owner(index, epoch))
            chunks.append(ChunkInProgress(epoch, *self.grid.ids(index), holder, timestamp, done))
        return chunks


def _differs(what: str, before: str, now: str, path: Path | None = None) -> StateFileError:
    where = "The ledger" if path is None else str(path)
    return StateFileError(
        f"The {what} has changed: {where} has {before}, this run has {now}.",
        "Resume with the original settings, or start a new run.",
    )


def _describe_dataset(dataset: Mapping[str, Any]) -> str:
    return f"{dataset.get('path')} ({dataset.get('size_bytes')} bytes, SHA-256 {str(dataset.get('sha256'))[:12]}…)"
