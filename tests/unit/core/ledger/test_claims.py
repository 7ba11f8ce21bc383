"""Whose chunk is next, and whose is taken when a group has none left."""

from __future__ import annotations

from typing import Any

import pytest

from core.ledger.claims import EpochPool

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")


def test_without_stealing_each_group_trains_its_own_in_order() -> None:
    pool = EpochPool([[1, 2], [3]])
    assert [pool.take(0, stealing=False) for _ in range(3)] == [1, 2, None]
    assert [pool.take(1, stealing=False) for _ in range(2)] == [3, None]


def test_a_group_that_is_done_takes_the_last_chunk_of_the_fullest() -> None:
    pool = EpochPool([[], [1, 2], [3, 4, 5, 6]])
    assert [pool.take(0, stealing=True) for _ in range(3)] == [6, 5, 2]
    assert (pool.take(2, stealing=True), pool.take(1, stealing=True)) == (3, 1)
    assert (pool.take(1, stealing=True), pool.take(0, stealing=True)) == (4, None)


@hypothesis.given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.data())
def test_each_chunk_is_trained_once_whoever_asks(sizes: list[int], data: Any) -> None:
    numbers = iter(range(sum(sizes)))
    pool = EpochPool([[next(numbers) for _ in range(size)] for size in sizes])
    groups = st.integers(0, len(sizes) - 1)
    taken = [pool.take(data.draw(groups), stealing=True) for _ in range(sum(sizes) + 1)]
    assert sorted(chunk for chunk in taken if chunk is not None) == list(range(sum(sizes))) and taken[-1] is None
