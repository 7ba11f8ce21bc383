"""Blocks and chunks cut a dataset without gap or overlap."""

from __future__ import annotations

from typing import Any

import pytest

from core.ledger.chunk_grid import ChunkGrid, LedgerSetup

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")
GRIDS = st.builds(ChunkGrid, st.integers(1, 200), st.integers(1, 60), st.integers(1, 70))


@hypothesis.given(GRIDS)
def test_chunks_in_their_order_are_the_dataset(grid: Any) -> None:
    at = 0
    for index in range(grid.chunks):
        assert grid.start(index) == at and 1 <= grid.count(index) <= grid.chunk_size
        assert grid.index(*grid.ids(index)) == index
        at += grid.count(index)
    assert at == grid.samples == sum(grid.samples_in(block) for block in range(grid.blocks))
    assert grid.chunks == sum(grid.chunks_in(block) for block in range(grid.blocks))


def test_the_last_chunk_of_a_block_and_the_last_block_may_be_short() -> None:
    grid = ChunkGrid(samples=25, samples_per_block=10, chunk_size=4)
    assert [grid.count(index) for index in range(grid.chunks)] == [4, 4, 2, 4, 4, 2, 4, 1]
    assert (grid.blocks, grid.chunks_per_block, grid.chunks_in(2), grid.samples_in(2)) == (3, 3, 2, 5)


@pytest.mark.parametrize(
    ("block", "chunk", "index"), [(0, 0, 0), (2, 1, 7), (2, 2, None), (3, 0, None), (0, 3, None), (0, -1, None)]
)
def test_a_chunk_that_is_not_there_has_no_index(block: int, chunk: int, index: int | None) -> None:
    assert ChunkGrid(25, 10, 4).index(block, chunk) == index
    assert ChunkGrid(25, 10, 4).index(-1, 0) is None


@hypothesis.given(GRIDS, st.integers(1, 5), st.integers(1, 6))
def test_shares_are_what_the_owners_train(grid: Any, world: int, epochs: int) -> None:
    setup = LedgerSetup(grid, {}, 0, world, 1 if world == 1 else world)
    owned = [0] * world
    for epoch in range(epochs):
        for index in range(grid.chunks):
            owned[setup.owner(index, epoch)] += grid.count(index)
    assert grid.shares(world, epochs) == owned
