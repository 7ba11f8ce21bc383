"""Batches from chunks: every sample once an epoch, the same order for any number of ranks, resumable at any step."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from core.ledger.ledger import Ledger
from core.protocol.messages import Grant, Position, SkippedBatch
from workers.training.batches import ChunkPlan, GroupBatches, GroupProgress, StepBatch, sample_ranges

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")

plans = st.builds(
    ChunkPlan,
    samples=st.integers(1, 90),
    samples_per_block=st.integers(1, 40),
    chunk_size=st.integers(1, 17),
    seed=st.integers(0, 5),
)


def ledger_of(plan: ChunkPlan, world: int, groups: int, epochs: int) -> Ledger:
    dataset = {"path": "x", "kind": "file", "files": 1, "size_bytes": 1, "sha256": "0" * 64}
    return Ledger.new(
        dataset, plan.samples, plan.samples_per_block, plan.chunk_size, plan.seed, world, groups, epochs, "run"
    )


def group(plan: ChunkPlan, ledger: Ledger, number: int, batch: int, micro: int, rank: int, size: int) -> GroupBatches:
    return GroupBatches(plan, lambda sequence: ledger.claim(number, sequence), batch, micro, rank, size)


def all_batches(batches: GroupBatches) -> list[StepBatch]:
    taken: list[StepBatch] = []
    while (batch := batches.next(len(taken) + 1)) is not None:
        taken.append(batch)
    return taken


def indices(batches: Sequence[StepBatch]) -> list[int]:
    """What was trained, without the samples of weight 0 that only keep a rank in step."""
    return [int(i) for batch in batches for micro in batch.micro_batches if micro.weight for i in micro.indices]


@hypothesis.settings(max_examples=80, deadline=None)
@hypothesis.given(
    plan=plans, world=st.integers(1, 4), batch=st.integers(1, 24), micro=st.integers(1, 5), epochs=st.integers(1, 3)
)
def test_in_step_every_sample_is_trained_once_an_epoch(
    plan: ChunkPlan, world: int, batch: int, micro: int, epochs: int
) -> None:
    ledger = ledger_of(plan, world, 1, epochs)
    ranks = [all_batches(group(plan, ledger, 0, batch, micro, rank, world)) for rank in range(world)]
    assert {len(steps) for steps in ranks} == {plan.group_steps(epochs, 0, 1, batch)}
    counts = Counter(i for steps in ranks for i in indices(steps))
    assert counts == dict.fromkeys(range(plan.samples), epochs)
    alone = all_batches(group(plan, ledger_of(plan, 1, 1, epochs), 0, batch, micro, 0, 1))
    for number, steps in enumerate(zip(*ranks, strict=True)):
        assert [i for step in steps for i in indices([step])] == indices([alone[number]])
        weights = sum(m.weight for step in steps for m in step.micro_batches)
        assert weights / world == pytest.approx(1.0)


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(plan=plans, world=st.integers(1, 4), batch=st.integers(1, 24), epochs=st.integers(1, 3))
def test_independent_groups_share_every_epoch_between_them(
    plan: ChunkPlan, world: int, batch: int, epochs: int
) -> None:
    ledger = ledger_of(plan, world, world, epochs)
    groups = [all_batches(group(plan, ledger, number, batch, 3, 0, 1)) for number in range(world)]
    assert Counter(i for steps in groups for i in indices(steps)) == dict.fromkeys(range(plan.samples), epochs)
    for number, steps in enumerate(groups):
        assert len(steps) == plan.group_steps(epochs, number, world, batch)
        for step in steps:
            for done in step.finished:
                assert plan.owner(done.epoch, done.block_id, done.chunk_id, world) == number


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    plan=plans, batch=st.integers(1, 24), epochs=st.integers(1, 2), stop=st.integers(0, 30), lost=st.integers(0, 3)
)
def test_what_is_resumed_goes_on_with_the_very_next_sample(
    plan: ChunkPlan, batch: int, epochs: int, stop: int, lost: int
) -> None:
    """A commit after `stop` steps, `lost` more steps that a crash takes away, then another process."""
    whole = all_batches(group(plan, ledger_of(plan, 1, 1, epochs), 0, batch, 3, 0, 1))
    ledger = ledger_of(plan, 1, 1, epochs)
    first = group(plan, ledger, 0, batch, 3, 0, 1)
    before = [b for b in (first.next(step + 1) for step in range(min(stop, len(whole)))) if b is not None]
    position = first.position(len(before), 1)
    progress = GroupProgress(position.samples_seen, first.progress.chunks_done)
    for step in range(lost):
        first.next(len(before) + step + 1)
    ledger.commit({0: position})
    again = Ledger.from_dict(ledger.as_dict())
    second = group(plan, again, 0, batch, 3, 0, 1)
    second.progress = progress
    after = all_batches(second)
    assert indices(before) + indices(after) == indices(whole)
    assert second.progress.samples_seen == plan.samples * epochs
    assert second.progress.chunks_done == sum(len(batch.finished) for batch in whole)


def test_a_skipped_batch_is_named_until_a_checkpoint_holds_it_and_counts_as_passed() -> None:
    plan = ChunkPlan(samples=12, samples_per_block=12, chunk_size=6, seed=0)
    ledger = ledger_of(plan, 1, 1, 1)
    batches = group(plan, ledger, 0, 4, 2, 0, 1)
    for step in (1, 2, 3):
        batch = batches.next(step)
        assert batch is not None
        if step == 2:
            batches.skip(batch, step)
            gone = set(batch.indices.tolist())
        position = batches.position(step, step)
        ledger.commit({0: position}, step)
        assert len(position.skipped) == (step > 1) and position.samples_seen == (4 if step < 3 else 8)
    (named,) = batches.position(3).skipped
    assert named == SkippedBatch(0, 2, sample_ranges(np.array(sorted(gone))))
    batches.committed(1)
    assert batches.position(3).skipped == [named], "checkpoint 1 does not hold it"
    batches.committed(2)
    assert batches.position(3).skipped == [] and batches.skipped_ranges == 0
    again = Ledger.from_dict(ledger.as_dict())
    assert (again.samples_trained, again.progress().samples_skipped) == (8, 4)
    assert again.progress().finished and again.as_dict() == ledger.as_dict()


def test_sample_ranges_join_neighbours() -> None:
    assert sample_ranges(np.array([7, 3, 4, 9, 5])) == [[3, 5], [7, 7], [9, 9]]


def test_completed_chunks_are_named_until_a_checkpoint_holds_them() -> None:
    plan = ChunkPlan(samples=40, samples_per_block=40, chunk_size=4, seed=1)
    batches = group(plan, ledger_of(plan, 1, 1, 1), 0, 4, 4, 0, 1)

    def named(position: Position) -> int:
        return len(position.completed)

    batches.next(1)
    assert named(batches.position(1, checkpoint=1)) == 1
    batches.next(2)
    assert named(batches.position(2, checkpoint=2)) == 2, "checkpoint 1 is not committed yet"
    batches.committed(1)
    assert named(batches.position(2)) == 1
    batches.next(3)
    batches.committed(2)
    assert named(batches.position(3)) == 1
    batches.committed(9)
    assert named(batches.position(3)) == 1, "a checkpoint this rank had no part in changes nothing"


def test_chunks_are_numbered_as_the_ledger_numbers_them() -> None:
    plan = ChunkPlan(samples=107, samples_per_block=30, chunk_size=8, seed=3)
    grid = ledger_of(plan, 2, 2, 1).setup.grid
    assert list(plan.sizes()) == [grid.count(index) for index in range(grid.chunks)]
    assert [plan.chunk_index(*grid.ids(index)) for index in range(grid.chunks)] == list(range(grid.chunks))


def test_an_epoch_has_its_own_order() -> None:
    plan = ChunkPlan(samples=64, samples_per_block=64, chunk_size=64, seed=3)
    first, second = plan.order(0, 0, 0, 0, 64), plan.order(1, 0, 0, 0, 64)
    assert sorted(first) == sorted(second) == list(range(64))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, plan.order(0, 0, 0, 0, 64))


def test_a_short_wait_for_a_chunk_counts_where_the_clock_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's monotonic clock stands still for 16 ms on Windows (up to 3.12)."""
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    plan = ChunkPlan(8, 8, 8, 0)
    ledger = ledger_of(plan, 1, 1, 1)

    def claim(sequence: int) -> Grant:
        time.sleep(0.002)
        return ledger.claim(0, sequence)

    batch = GroupBatches(plan, claim, 4, 4, 0, 1).next(1)
    assert batch is not None and batch.wait_s >= 0.002
