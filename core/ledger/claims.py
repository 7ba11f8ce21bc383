"""Claims: each replica group's chunks in progress, and its next one.

The order of chunks depends on seed and epoch alone.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from core.ledger.chunk_grid import LedgerSetup
from core.ledger.committed import ChunkKey, Committed, LedgerConflictError
from core.protocol.messages import Grant


@dataclass(slots=True)
class _Group:
    """The claims of one replica group.

    Attributes:
        upcoming: Epoch and index of every chunk that it still has to train, in order.
        grants: Granted chunks from sequence number `first` on: those before are committed.
        claimed: When each of them was claimed, in Unix seconds.
    """

    upcoming: Iterator[ChunkKey]
    epoch: int
    first: int = 0
    grants: deque[Grant] = field(default_factory=deque)
    claimed: dict[ChunkKey, float] = field(default_factory=dict)
    exhausted: bool = False


class Claims:
    """The chunks that ranks have claimed since they were started from `committed`; `clock` gives Unix seconds."""

    def __init__(self, setup: LedgerSetup, committed: Committed, clock: Callable[[], float]) -> None:
        self._setup = setup
        self._committed = committed
        self._clock = clock
        self._pools: dict[int, list[deque[int]]] = {}
        self._groups = [_Group(self._chunks_for(group), committed.epoch) for group in range(setup.groups)]

    def claim(self, group: int, sequence: int) -> Grant:
        if not 0 <= group < self._setup.groups:
            raise LedgerConflictError(f"A rank claimed for replica group {group}, but there are {self._setup.groups}.")
        # Grants stay until a commit holds them, so ranks of one group that ask at different times get the same chunk.
        state = self._groups[group]
        position = sequence - state.first
        if 0 <= position < len(state.grants):
            return state.grants[position]
        if position < 0:
            raise LedgerConflictError(
                f"Replica group {group} claimed chunk {sequence} again, which is committed already."
            )
        if position > len(state.grants) and not state.exhausted:
            raise LedgerConflictError(
                f"Replica group {group} claimed chunk {sequence} before chunk {state.first + len(state.grants)}."
            )
        key = next(state.upcoming, None)
        if key is None:
            state.exhausted = True
            return Grant(sequence, exhausted=True)
        grant = self._grant(sequence, key)
        state.grants.append(grant)
        state.claimed[key] = self._clock()
        return grant

    def claimed(self, group: int) -> dict[ChunkKey, float]:
        return self._groups[group].claimed

    def commit(self, committed: Committed) -> None:
        self._committed = committed
        for state in self._groups:
            # From the left only: sequence numbers count without gaps, also where a later chunk is done before.
            while state.grants and committed.is_done(*(key := self._key(state.grants[0]))):
                state.grants.popleft()
                state.first += 1
                state.claimed.pop(key, None)

    def _key(self, grant: Grant) -> ChunkKey:
        return grant.epoch, grant.block_id * self._setup.grid.chunks_per_block + grant.chunk_id

    def _grant(self, sequence: int, key: ChunkKey) -> Grant:
        epoch, index = key
        grid, partial = self._setup.grid, self._committed.partial.get(key)
        block_id, chunk_id = grid.ids(index)
        return Grant(
            sequence=sequence,
            epoch=epoch,
            block_id=block_id,
            chunk_id=chunk_id,
            start=grid.start(index),
            count=grid.count(index),
            offset=partial.samples_done if partial else 0,
        )

    def _chunks_for(self, group: int) -> Iterator[ChunkKey]:
        epoch, epochs = self._committed.epoch, self._setup.epochs
        while epochs is None or epoch < epochs:
            self._groups[group].epoch = epoch
            queue = self._pool(epoch)[group]
            while queue:
                yield epoch, queue.popleft()
            epoch += 1
        self._groups[group].epoch = epoch

    def _pool(self, epoch: int) -> list[deque[int]]:
        """Each group's unclaimed chunks of an epoch, kept from the first group's coming to the last one's leaving."""
        if epoch not in self._pools:
            done = self._committed.done.get(epoch, {})
            begun: list[list[int]] = [[] for _ in self._groups]
            rest: list[list[int]] = [[] for _ in self._groups]
            for index in self._order(epoch):
                if index not in done:
                    group = self._setup.group_for(self._setup.owner(index, epoch))
                    (begun if (epoch, index) in self._committed.partial else rest)[group].append(index)
            # Partly trained chunks come first, else many of them could be open at a later commit.
            self._pools[epoch] = [deque(first + then) for first, then in zip(begun, rest, strict=True)]
            oldest = min(group.epoch for group in self._groups)
            for old in [number for number in self._pools if number < oldest]:
                del self._pools[old]
        return self._pools[epoch]

    def _order(self, epoch: int) -> list[int]:
        order = list(range(self._setup.grid.chunks))
        # A text seed goes through SHA-512, not through hash(), which differs from process to process
        # (https://docs.python.org/3/library/random.html#random.seed): every resume has the same order.
        random.Random(f"{self._setup.seed}/{epoch}").shuffle(order)
        return order
