"""Unequal shares of a batch: who gets how much, and that the gradient stays that of the whole batch."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from workers.training.batches import ChunkPlan

pytest.importorskip("torch", reason="imports torch")
hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")

from tests.unit.workers.training.test_batches import all_batches, group, indices, ledger_of, plans  # noqa: E402
from workers.training.balance import LoadBalance, Sharing, equal, proportional  # noqa: E402


class Ranks:
    """Ranks as threads, whose sums are real sums that wait for all."""

    def __init__(self, world: int, global_batch: int) -> None:
        self._barrier = threading.Barrier(world)
        self._given: dict[int, Sequence[float]] = {}
        self.balances = [LoadBalance(global_batch, rank, world, self._sum_for(rank)) for rank in range(world)]

    def start(self, speeds: Sequence[float]) -> list[Sharing | None]:
        """Every rank's first decision when each has measured its own speed only."""
        return self._all(lambda rank: self.balances[rank].start(speeds[rank]))

    def again(self, seconds: Sequence[float], passes: int = 10) -> list[Sharing | None]:
        """Every rank's decision after a pass over its whole share took so long."""

        def one(rank: int) -> Sharing | None:
            balance = self.balances[rank]
            return balance.again(balance.shares[rank] / seconds[rank], passes)

        return self._all(one)

    def _all(self, decide: Callable[[int], Sharing | None]) -> list[Sharing | None]:
        answers: dict[int, Sharing | None] = {}

        def run(rank: int) -> None:
            answers[rank] = decide(rank)

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(self.balances))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        return [answers[rank] for rank in range(len(self.balances))]

    def _sum_for(self, rank: int) -> Callable[[Sequence[float]], list[float]]:
        def total(values: Sequence[float]) -> list[float]:
            self._given[rank] = values
            self._barrier.wait(10)
            sums = [sum(column) for column in zip(*self._given.values(), strict=True)]
            self._barrier.wait(10)
            return sums

        return total


@hypothesis.given(total=st.integers(1, 500), speeds=st.lists(st.floats(0.01, 100.0), min_size=1, max_size=6))
def test_shares_are_whole_and_in_proportion(total: int, speeds: list[float]) -> None:
    shares = proportional(total, speeds)
    assert sum(shares) == total
    assert min(shares) >= (1 if total >= len(speeds) else 0)
    rest = total - len(speeds)
    for share, speed in zip(shares, speeds, strict=True):
        if rest >= 0:
            assert abs(share - 1 - rest * speed / sum(speeds)) < 1
    assert sum(equal(total, len(speeds))) == total


def test_the_faster_rank_gets_more_and_all_ranks_decide_alike() -> None:
    ranks = Ranks(2, 64)
    decisions = ranks.start([190.0, 100.0])
    assert decisions[0] == decisions[1]
    assert str(decisions[0]) == "rank 0 1.9 × rank 1: 42 + 22 of 64"
    assert [balance.shares for balance in ranks.balances] == [(42, 22)] * 2


def test_a_difference_that_is_hardly_worth_it_changes_nothing() -> None:
    ranks = Ranks(3, 96)
    decisions = ranks.start([100.0, 103.0, 99.0])
    assert all(decision is not None and decision.shares == (32, 32, 32) for decision in decisions)
    assert ranks.again([0.32, 0.33, 0.32]) == [None] * 3


def test_real_steps_correct_the_first_measurement() -> None:
    ranks = Ranks(2, 60)
    ranks.start([100.0, 100.0])
    decisions = ranks.again([0.1, 0.2])  # 30 samples each: 300 and 150 a second
    assert decisions[0] == decisions[1] and decisions[0] is not None
    assert decisions[0].reason == "steps" and decisions[0].shares == (40, 20)
    assert ranks.again([40 / 300, 20 / 150]) == [None, None]


def test_a_change_that_made_steps_longer_is_taken_back_for_a_while() -> None:
    """Time need not be in proportion to samples: here rank 0 takes twice as long for more than 30."""
    ranks = Ranks(2, 60)
    ranks.start([100.0, 100.0])
    ranks.again([0.1, 0.2])
    back = ranks.again([0.25, 0.2])
    assert back[0] == back[1] and back[0] is not None
    assert back[0].reason == "back" and back[0].shares == (30, 30)
    assert str(back[0]).endswith("30 + 30 of 60 as before, since steps became longer")
    for _ in range(4):
        assert ranks.again([0.1, 0.2]) == [None, None]
        assert all(balance.shares == (30, 30) for balance in ranks.balances)
    tried = ranks.again([0.1, 0.2])
    assert tried[0] == tried[1] and tried[0] is not None and tried[0].shares == (40, 20)


def test_a_machine_that_is_a_little_slower_for_a_while_takes_nothing_back() -> None:
    ranks = Ranks(2, 60)
    ranks.start([100.0, 100.0])
    ranks.again([0.1, 0.2])
    assert ranks.again([0.21, 0.21]) == [None, None]
    assert all(balance.shares == (40, 20) for balance in ranks.balances)


def test_nothing_is_decided_by_a_few_passes_of_one_rank() -> None:
    ranks = Ranks(2, 60)
    assert ranks.again([0.1, 0.2], passes=3) == [None, None]
    assert all(balance.shares == (30, 30) for balance in ranks.balances)


def test_saved_shares_fit_the_same_ranks_and_batch_only() -> None:
    balance = Ranks(2, 60).balances[0]
    for other in (None, [60], [30, 31], [20, 20, 20], "30 30"):
        assert not balance.restore(other)
        assert balance.shares == (30, 30)
    assert balance.restore([41, 19]) and balance.shares == (41, 19)


def test_shares_are_looked_at_early_and_then_rarely() -> None:
    balance = Ranks(2, 60).balances[0]
    assert [step for step in range(1, 260) if balance.is_due(step)] == [16, 32, 64, 128, 192, 256]


@hypothesis.settings(max_examples=80, deadline=None)
@hypothesis.given(
    plan=plans,
    speeds=st.lists(st.floats(0.1, 10.0), min_size=1, max_size=4),
    batch=st.integers(4, 24),
    micro=st.integers(1, 5),
    alike=st.booleans(),
)
def test_with_any_shares_every_sample_counts_once_and_alike(
    plan: ChunkPlan, speeds: list[float], batch: int, micro: int, alike: bool
) -> None:
    world = len(speeds)
    shares = proportional(batch, speeds)
    ledger = ledger_of(plan, world, 1, 2)
    groups = [group(plan, ledger, 0, batch, micro, rank, world) for rank in range(world)]
    for one in groups:
        one.shares, one.alike = shares, alike
    ranks = [all_batches(one) for one in groups]
    assert Counter(i for steps in ranks for i in indices(steps)) == dict.fromkeys(range(plan.samples), 2)
    alone = all_batches(group(plan, ledger_of(plan, 1, 1, 2), 0, batch, micro, 0, 1))
    for number, steps in enumerate(zip(*ranks, strict=True)):
        assert [i for step in steps for i in indices([step])] == indices([alone[number]])
        if steps[0].global_samples == batch:
            assert [step.samples for step in steps] == list(shares)
        for step in steps:
            for part in step.micro_batches:
                assert 1 <= len(part.indices) <= micro, "no more at once than was asked for"
                # averaged over the ranks, each sample's gradient counts 1 / samples of the batch
                if part.weight:
                    assert part.weight / len(part.indices) / world == pytest.approx(1 / step.global_samples)
        if alike:
            assert len({len(step.micro_batches) for step in steps}) == 1, "else a rank waits for a pass nobody makes"
