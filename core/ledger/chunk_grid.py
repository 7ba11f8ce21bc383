"""Chunk grid: a dataset's samples cut into blocks and chunks; and the ledger's setup, which says who trains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ChunkGrid:
    """A dataset of `samples`, cut into blocks of `samples_per_block`, each cut into chunks of `chunk_size`.

    A chunk never reaches over its block's end, so a block's last chunk may be short, and so may the last block.
    Chunks are counted through the whole dataset by an index (0, 1, …); `chunk_id` counts within its block.
    """

    samples: int
    samples_per_block: int
    chunk_size: int

    @property
    def chunks_per_block(self) -> int:
        return -(-self.samples_per_block // self.chunk_size)

    @property
    def blocks(self) -> int:
        return -(-self.samples // self.samples_per_block)

    @property
    def chunks(self) -> int:
        return (self.blocks - 1) * self.chunks_per_block + self.chunks_in(self.blocks - 1)

    def samples_in(self, block_id: int) -> int:
        return min(self.samples_per_block, self.samples - block_id * self.samples_per_block)

    def chunks_in(self, block_id: int) -> int:
        return -(-self.samples_in(block_id) // self.chunk_size)

    def index(self, block_id: int, chunk_id: int) -> int | None:
        if 0 <= block_id < self.blocks and 0 <= chunk_id < self.chunks_in(block_id):
            return block_id * self.chunks_per_block + chunk_id
        return None

    def ids(self, index: int) -> tuple[int, int]:
        return divmod(index, self.chunks_per_block)

    def start(self, index: int) -> int:
        block_id, chunk_id = self.ids(index)
        return block_id * self.samples_per_block + chunk_id * self.chunk_size

    def count(self, index: int) -> int:
        block_id, chunk_id = self.ids(index)
        return min(self.chunk_size, self.samples_in(block_id) - chunk_id * self.chunk_size)

    def shares(self, world: int, epochs: int) -> list[int]:
        """Samples that each rank trains in a number of epochs if none takes another's chunks."""
        counts = [0] * world
        for index in range(self.chunks):
            counts[index % world] += self.count(index)
        rounds, rest = divmod(epochs, world)
        turns = [rounds + (turn < rest) for turn in range(world)]  # how often an epoch begins with that rank
        return [sum(counts[(rank - turn) % world] * turns[turn] for turn in range(world)) for rank in range(world)]


@dataclass(frozen=True, slots=True)
class LedgerSetup:
    """The cut of a dataset, the order of its chunks, and their shares among ranks.

    Attributes:
        dataset: Its identity (`core.data.dataset.DatasetIdentity.as_dict`).
        seed: Orders the chunks of each epoch.
        groups: Replica groups: 1 when all ranks train in step, else as many as ranks.
        epochs: How often the dataset is trained; None for no limit.
        run_id: AI-OS's `brain_id` in the state file.
    """

    grid: ChunkGrid
    dataset: Mapping[str, Any]
    seed: int
    world: int
    groups: int
    epochs: int | None = None
    run_id: str | None = None

    def group_for(self, rank: int) -> int:
        return rank if self.groups > 1 else 0

    def owner(self, index: int, epoch: int) -> int:
        """The rank that owns a chunk in an epoch; it moves on with each, so that every rank sees every chunk."""
        return (index + epoch) % self.world

    def trainer(self, group: int, index: int, epoch: int) -> int:
        return self.owner(index, epoch) if self.groups == 1 else group
