"""Replica groups of a pretended training: they claim, train, stage and crash as ranks do, and count every sample."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from core.ledger.ledger import Ledger
from core.protocol.messages import ChunkDone, Grant, Position

# Epoch, chunk index, place in the chunk's shuffled order.
Sample = tuple[int, int, int]


@dataclass
class ReplicaGroup:
    """One replica group since its start: what it holds and what it has to tell."""

    number: int
    sequence: int = 0
    step: int = 0
    grant: Grant | None = None
    done: int = 0
    exhausted: bool = False
    completed: list[ChunkDone] = field(default_factory=list)
    seen: Counter[Sample] = field(default_factory=Counter)

    def position(self) -> Position:
        """What it would stage at this boundary."""
        partial = []
        if self.grant is not None and self.done:
            partial = [[self.grant.epoch, self.grant.block_id, self.grant.chunk_id, self.done]]
        return Position(self.step, sum(self.seen.values()), list(self.completed), partial)


class Training:
    """Weights that count the samples they saw, a ledger, and what was committed of both."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.weights: Counter[Sample] = Counter()
        self.order: list[tuple[int, int]] = []
        self.saved_weights: Counter[Sample] = Counter()
        self.saved_ledger = json.dumps(ledger.as_dict())
        self.checkpoint = 0
        self.start()

    def start(self) -> None:
        """New ranks begin."""
        self.groups = [ReplicaGroup(number) for number in range(self.ledger.setup.groups)]

    def step(self, number: int, samples: int) -> None:
        """One optimizer step of a replica group; it may cross chunks, never epochs."""
        group = self.groups[number % len(self.groups)]
        group.step += 1
        epoch = group.grant.epoch if group.grant else None
        while samples > 0 and not group.exhausted:
            if group.grant is None:
                group.grant = self.ledger.claim(group.number, group.sequence)
                group.exhausted = group.grant.exhausted
                if group.exhausted:
                    group.grant = None
                    return
                group.done = group.grant.offset
                group.sequence += 1
                self.order.append((group.grant.epoch, self._index(group.grant)))
            if epoch is not None and group.grant.epoch != epoch:
                return
            epoch = group.grant.epoch
            samples = self._train(group, group.grant, samples)

    def commit(self) -> None:
        """Every replica group stages at its boundary, and the checkpoint becomes whole."""
        self.checkpoint += 1
        positions = {group.number: group.position() for group in self.groups}
        text = json.dumps(self.ledger.preview(positions, self.checkpoint))
        self.ledger.commit(positions, self.checkpoint)
        assert json.loads(text) == self.ledger.as_dict()
        self.saved_ledger, self.saved_weights = text, self.weights.copy()
        for group in self.groups:
            group.completed.clear()

    def crash(self, world: int | None = None, groups: int | None = None) -> None:
        """Everything since the last commit is lost; other ranks may go on."""
        self.ledger = Ledger.from_dict(json.loads(self.saved_ledger))
        self.weights = self.saved_weights.copy()
        if world is not None and groups is not None:
            self.ledger.change(world=world, groups=groups)
        self.start()

    def finish(self, samples: int = 5) -> None:
        """Trains to the end and commits."""
        while not all(group.exhausted for group in self.groups):
            for group in self.groups:
                self.step(group.number, samples)
        self.commit()

    def expected(self) -> Counter[Sample]:
        """Each sample of each epoch, once."""
        grid, epochs = self.ledger.setup.grid, self.ledger.setup.epochs or 0
        return Counter(
            (epoch, index, place)
            for epoch in range(epochs)
            for index in range(grid.chunks)
            for place in range(grid.count(index))
        )

    def _train(self, group: ReplicaGroup, grant: Grant, samples: int) -> int:
        taken = min(samples, grant.count - group.done)
        for place in range(group.done, group.done + taken):
            self.weights[grant.epoch, self._index(grant), place] += 1
        group.done += taken
        if group.done == grant.count:
            done = ChunkDone(grant.epoch, grant.block_id, grant.chunk_id, group.step, grant.count)
            group.completed.append(done)
            group.grant, group.done = None, 0
        return samples - taken

    def _index(self, grant: Grant) -> int:
        return grant.block_id * self.ledger.setup.grid.chunks_per_block + grant.chunk_id
