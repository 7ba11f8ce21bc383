"""Lanes of a pretended training: they claim, train, stage and crash as ranks do, and count every sample."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from core.ledger.ledger import Ledger
from core.protocol.messages import ChunkDone, Grant, Position

Sample = tuple[int, int, int]
"""Epoch, chunk index, place in the chunk's shuffled order."""


@dataclass
class Lane:
    """One lane since its start: what it holds and what it has to tell."""

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
        self.generation = 0
        self.start()

    def start(self) -> None:
        """New ranks begin."""
        self.lanes = [Lane(number) for number in range(self.ledger.lanes)]

    def step(self, number: int, samples: int) -> None:
        """One optimizer step of a lane; it may cross chunks, never epochs."""
        lane = self.lanes[number % len(self.lanes)]
        lane.step += 1
        epoch = lane.grant.epoch if lane.grant else None
        while samples > 0 and not lane.exhausted:
            if lane.grant is None:
                lane.grant = self.ledger.claim(lane.number, lane.sequence)
                lane.exhausted = lane.grant.exhausted
                if lane.exhausted:
                    lane.grant = None
                    return
                lane.done = lane.grant.offset
                lane.sequence += 1
                self.order.append((lane.grant.epoch, self._index(lane.grant)))
            if epoch is not None and lane.grant.epoch != epoch:
                return
            epoch = lane.grant.epoch
            samples = self._train(lane, lane.grant, samples)

    def commit(self) -> None:
        """Every lane stages at its boundary, and the generation becomes whole."""
        self.generation += 1
        positions = {lane.number: lane.position() for lane in self.lanes}
        text = json.dumps(self.ledger.preview(positions, self.generation))
        self.ledger.commit(positions, self.generation)
        assert json.loads(text) == self.ledger.as_dict()
        self.saved_ledger, self.saved_weights = text, self.weights.copy()
        for lane in self.lanes:
            lane.completed.clear()

    def crash(self, world: int | None = None, lanes: int | None = None) -> None:
        """Everything since the last commit is lost; other ranks may go on."""
        stealing = self.ledger.stealing
        self.ledger = Ledger.from_dict(json.loads(self.saved_ledger))
        self.ledger.stealing = stealing
        self.weights = self.saved_weights.copy()
        if world is not None and lanes is not None:
            self.ledger.rescale(world, lanes)
        self.start()

    def finish(self, samples: int = 5) -> None:
        """Trains to the end and commits."""
        while not all(lane.exhausted for lane in self.lanes):
            for lane in self.lanes:
                self.step(lane.number, samples)
        self.commit()

    def expected(self) -> Counter[Sample]:
        """Each sample of each epoch, once."""
        grid, epochs = self.ledger.grid, self.ledger.epochs or 0
        return Counter(
            (epoch, index, place)
            for epoch in range(epochs)
            for index in range(grid.chunks)
            for place in range(grid.count(index))
        )

    def _train(self, lane: Lane, grant: Grant, samples: int) -> int:
        taken = min(samples, grant.count - lane.done)
        for place in range(lane.done, lane.done + taken):
            self.weights[grant.epoch, self._index(grant), place] += 1
        lane.done += taken
        if lane.done == grant.count:
            done = ChunkDone(grant.epoch, grant.block_id, grant.chunk_id, lane.step, grant.count)
            lane.completed.append(done)
            lane.grant, lane.done = None, 0
        return samples - taken

    def _index(self, grant: Grant) -> int:
        return grant.block_id * self.ledger.grid.chunks_per_block + grant.chunk_id
