"""Over any sequence of modes, numbers of ranks and kills: no weights see a sample twice, and none is left out.

Everything that decides it is the real thing: the ledger, what each rank takes out of it, which copy goes on and from
which step. Only the weights are pretended: they are the set of samples that they have seen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="cuts batches")

from core.checkpoints.restore_plan import AVERAGE, RestorePlan, plan_restore
from core.checkpoints.store import Checkpoint
from core.config import RunConfig
from core.launch.work_plan import rank_starts
from core.ledger.ledger import Ledger
from core.protocol.messages import Position, RankStart
from tests.helpers.resolved_run import resolved_run
from workers.training.batches import ChunkPlan, GroupBatches, GroupProgress, saved_progress
from workers.training.rank_checkpoints import taken_up

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
strategies = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")

DATASET = {"path": "text.txt", "size_bytes": 1, "sha256": "0", "files": 1}
EPOCHS = 2
BLOCK = 17
# Epoch and index in the dataset.
Sample = tuple[int, int]


@dataclass
class ReplicaGroup:
    """A replica group's ranks, its step, and the weights it trains: how often they have seen each sample."""

    ranks: list[GroupBatches]
    step: int
    seen: Counter[Sample]
    ends: int
    exhausted: bool = False

    def train(self) -> None:
        if self.exhausted:
            return
        shares = [rank.next(self.step + 1) for rank in self.ranks]
        self.exhausted = shares[0] is None
        if self.exhausted:
            assert shares == [None] * len(shares)
            return
        self.step += 1
        for share in shares:
            assert share is not None
            for micro in share.micro_batches:
                if micro.weight:
                    self.seen.update((share.epoch, int(index)) for index in micro.indices)


@dataclass
class Saved:
    """What is on the disk: the ledger's text, the manifest, each copy's weights."""

    ledger: str
    checkpoint: Checkpoint | None = None
    copies: list[Counter[Sample]] = field(default_factory=lambda: [Counter()])


class Run:
    def __init__(self, samples: int, chunk: int, seed: int, mode: str, world: int, micro: int) -> None:
        self.plan = ChunkPlan(samples, BLOCK, chunk, seed)
        ledger = Ledger.new(DATASET, samples, BLOCK, chunk, seed, 1, 1, EPOCHS)
        self.saved = Saved(json.dumps(ledger.as_dict()))
        self.highest: Counter[int] = Counter()
        self.start(mode, world, micro, "best")

    def start(self, mode: str, world: int, micro: int, policy: str) -> None:
        self.mode, self.world = mode, world
        groups = world if mode == "independent" else 1
        self.ledger = Ledger.from_dict(json.loads(self.saved.ledger))
        self.ledger.change(world=world, groups=groups)
        config = RunConfig(mode=mode, batch_size=micro, epochs=EPOCHS, merge_policy=policy)
        restore = plan_restore(self.saved.checkpoint, mode, world, policy)
        starts = rank_starts(resolved_run(config, mode, world), self.ledger, self.saved.checkpoint, restore)
        assert all(start.step >= self.highest[rank] for rank, start in enumerate(starts)), "no curve runs backwards"
        self.groups = []
        for group in range(groups):
            ranks = range(world) if groups == 1 else range(group, group + 1)
            first = starts[ranks[0]]
            assert first.steps_left is not None
            assert {starts[rank].step for rank in ranks} == {first.step}
            size = micro * len(ranks)
            batches = [
                GroupBatches(
                    self.plan,
                    self._claim(group),
                    size,
                    micro,
                    n,
                    len(ranks),
                    self._progress(rank, restore, starts[rank]),
                )
                for n, rank in enumerate(ranks)
            ]
            self.groups.append(
                ReplicaGroup(batches, first.step, self._weights(restore, ranks[0]), ends=first.step + first.steps_left)
            )

    def commit(self, how: str, between: Sequence[int]) -> None:
        """Groups stage one after the other while others train on, then the host makes it a checkpoint, or dies."""
        number = 1 if self.saved.checkpoint is None else self.saved.checkpoint.number + 1
        positions: dict[int, Position] = {}
        copies = []
        for group, count in zip(self.groups, [*between, *[0] * self.world], strict=False):
            copies.append(group.seen.copy())
            positions |= {len(positions) + n: rank.position(group.step, number) for n, rank in enumerate(group.ranks)}
            for other in self.groups[: count + 1]:
                other.train()
        text = json.dumps(self.ledger.preview(positions, number))
        if how == "killed before the manifest":
            return
        step = max(position.step for position in positions.values())
        made = Checkpoint(number, Path("nowhere"), step, 0.0, self.world, self.mode, None, positions, ())
        self.saved = Saved(text, made, copies)
        for rank, position in positions.items():
            self.highest[rank] = position.step
        self._check()
        if how == "whole":
            self.ledger.commit(positions, number)
            for group in self.groups:
                for rank in group.ranks:
                    rank.committed(number)

    def finish(self) -> None:
        while not all(group.exhausted for group in self.groups):
            for group in self.groups:
                group.train()
        assert [group.step for group in self.groups] == [group.ends for group in self.groups], (
            "as many steps as planned"
        )
        self.commit("whole", [])

    def trained(self) -> set[Sample]:
        """What any weights on the way here have seen, those that were left out too."""
        return self.left_out.union(*self.saved.copies)

    left_out: frozenset[Sample] = frozenset()

    def _weights(self, restore: RestorePlan, rank: int) -> Counter[Sample]:
        copies, copy = self.saved.copies, restore.copies[rank]
        if rank == 0:  # whoever is not taken up is gone for good, once something is committed
            self._going = set(range(len(copies))) - {int(c) for c in restore.copies if c.isdecimal()}
            if restore.copies[0] in ("", AVERAGE):
                self._going = set()
            self.left_out = self.left_out.union(*(copies[gone] for gone in self._going))
        if copy == AVERAGE:
            merged: Counter[Sample] = Counter()
            for weights in copies:
                merged |= weights  # what two copies have in common they have from the same weights
            return merged
        return copies[int(copy)].copy() if copy else copies[0].copy()

    def _progress(self, rank: int, restore: RestorePlan, start: RankStart) -> GroupProgress:
        """As a rank finds it: in the file of whoever's copy it takes up, its own or else rank 0's."""
        known = {} if self.saved.checkpoint is None else self.saved.checkpoint.positions
        copy = restore.copies[rank]
        saved = known.get(int(copy) if copy.isdecimal() else rank, known.get(0, Position(0)))
        counters = {"samples_seen": saved.samples_seen, "chunks_done": 0}
        return saved_progress(taken_up(counters, start, rank))

    def _claim(self, group: int) -> Any:
        return lambda sequence: self.ledger.claim(group, sequence)

    def _check(self) -> None:
        for copy in self.saved.copies:
            assert max(copy.values(), default=1) == 1, "weights that saw a sample twice"
        ledger = Ledger.from_dict(json.loads(self.saved.ledger))
        assert ledger.samples_trained == len(self.trained()), "the ledger counts what was trained, once"


MODES = strategies.sampled_from(["single", "ddp", "zero", "fsdp", "independent"])
ACTIONS = strategies.one_of(
    strategies.tuples(strategies.just("train"), strategies.integers(0, 3), strategies.integers(1, 4)),
    strategies.tuples(
        strategies.just("commit"),
        strategies.sampled_from(["whole", "killed before the manifest", "killed after the manifest"]),
        strategies.lists(strategies.integers(0, 2), max_size=3),
    ),
    strategies.tuples(
        strategies.just("go on"),
        MODES,
        strategies.integers(2, 4),
        strategies.integers(1, 3),
        strategies.sampled_from(["best", "average", "none"]),
    ),
)


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(
    samples=strategies.integers(1, 60),
    chunk=strategies.integers(1, 9),
    seed=strategies.integers(0, 5),
    mode=MODES,
    world=strategies.integers(2, 4),
    micro=strategies.integers(1, 3),
    actions=strategies.lists(ACTIONS, max_size=30),
)
def test_every_sample_is_trained_once_whatever_mode_goes_on(
    samples: int, chunk: int, seed: int, mode: str, world: int, micro: int, actions: list[tuple[Any, ...]]
) -> None:
    run = Run(samples, chunk, seed, mode, 1 if mode == "single" else world, micro)
    for action in actions:
        match action:
            case ("train", group, count):
                for _ in range(count):
                    run.groups[group % len(run.groups)].train()
            case ("commit", how, between):
                run.commit(how, between)
                if how != "whole":
                    run.start(run.mode, run.world, run.groups[0].ranks[0].micro_batch, "best")
            case ("go on", other, ranks, batch, policy):
                run.start(other, 1 if other == "single" else ranks, batch, policy)
    run.finish()
    assert run.trained() == {(epoch, index) for epoch in range(EPOCHS) for index in range(samples)}
    assert Ledger.from_dict(json.loads(run.saved.ledger)).progress().finished
