"""Replica groups that take from each other: who gets what, what a group may expect, and whose chunk it counts as."""

from __future__ import annotations

import pytest

from core.ledger.ledger import Ledger, LedgerConflictError
from core.protocol.messages import ChunkDone, Grant, Position

DATASET = {"path": "text.txt", "size_bytes": 1, "sha256": "0", "files": 1}


def ledger(epochs: int | None = 1, groups: int = 2, *, stealing: bool = True) -> Ledger:
    """Twelve chunks of ten samples."""
    made = Ledger.new(DATASET, 120, 40, 10, 3, groups, groups, epochs)
    made.change(stealing=stealing)
    return made


def index(ledger: Ledger, grant: Grant) -> int:
    """The chunk's number."""
    found = ledger.setup.grid.index(grant.block_id, grant.chunk_id)
    assert found is not None
    return found


def test_a_group_that_is_done_takes_what_another_would_come_to_last() -> None:
    asked = ledger()
    apart = ledger(stealing=False)
    own = [index(apart, apart.claim(0, n)) for n in range(6)]
    others = [index(apart, apart.claim(1, n)) for n in range(6)]
    assert [index(asked, asked.claim(1, n)) for n in range(2)] == others[:2]
    taken = [index(asked, asked.claim(0, n)) for n in range(10)]
    assert taken == [*own, *reversed(others[2:])]
    assert asked.claim(0, 10).exhausted and asked.claim(1, 2).exhausted
    assert apart.claim(0, 6).exhausted


def test_a_taken_chunk_counts_as_trained_by_the_group_that_took_it() -> None:
    asked = ledger()
    grants = [asked.claim(0, n) for n in range(7)]
    stolen = grants[6]
    assert asked.setup.owner(index(asked, stolen), 0) == 1
    held = {(item.block_id, item.chunk_id): item.gpu_id for item in asked._in_progress(asked._committed)}
    assert held[stolen.block_id, stolen.chunk_id] == 0
    done = ChunkDone(0, stolen.block_id, stolen.chunk_id, 9, 10)
    asked.commit({0: Position(9, 10, [done])}, 1)
    completed = asked.as_dict()["completed_chunks"]
    assert [(chunk["block_id"], chunk["chunk_id"], chunk["gpu_id"]) for chunk in completed] == [
        (stolen.block_id, stolen.chunk_id, 0)
    ]


def test_a_group_cannot_have_trained_what_another_one_holds() -> None:
    asked = ledger()
    grant = asked.claim(1, 0)
    done = ChunkDone(0, grant.block_id, grant.chunk_id, 3, 10)
    with pytest.raises(LedgerConflictError, match="without having been claimed"):
        asked.commit({0: Position(3, 10, [done])}, 1)


def test_what_a_group_may_expect_follows_how_much_it_claims() -> None:
    asked = ledger()
    assert asked.claim(0, 0).expected == pytest.approx(110 * 30 / 50)
    fast = [asked.claim(0, n).expected for n in range(1, 6)]
    slow = asked.claim(1, 0).expected
    assert fast == sorted(fast, reverse=True)
    assert slow < fast[-1]
    assert fast[-1] + slow < 70
    last = [asked.claim(0, n).expected for n in range(6, 11)][-1]
    assert last == 0
    assert ledger(stealing=False).claim(0, 0).expected == -1
    assert ledger(epochs=None).claim(0, 0).expected == -1


def test_the_next_epoch_begins_when_nothing_of_this_one_is_unclaimed() -> None:
    asked = ledger(epochs=2)
    epochs = [asked.claim(0, n).epoch for n in range(12)]
    assert epochs == [0] * 12
    assert asked.claim(0, 12).epoch == 1
    assert asked.claim(1, 0).epoch == 1, "group 1 comes too late for the first"
