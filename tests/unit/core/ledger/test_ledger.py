from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from core.errors import StateFileError
from core.ledger.committed import LedgerConflictError
from core.ledger.ledger import Ledger
from core.ledger.state_file import parse_state
from core.protocol.messages import ChunkDone, Grant, Position
from tests.unit.core.ledger.ledger_groups import Training

DATASET = {"path": "C:\\texts\\my text.v2.txt", "size_bytes": 1234, "sha256": "ab" * 32, "files": 1}


def make(
    samples: int = 100, block: int = 40, chunk: int = 12, world: int = 2, groups: int = 1, epochs: int | None = 2
) -> Ledger:
    return Ledger.new(DATASET, samples, block, chunk, 7, world, groups, epochs)


def claims(ledger: Ledger, group: int = 0, limit: int = 10_000) -> list[Grant]:
    grants = []
    for sequence in range(limit):
        grant = ledger.claim(group, sequence)
        if grant.exhausted:
            break
        grants.append(grant)
    return grants


def done(grant: Grant, step: int = 1) -> ChunkDone:
    return ChunkDone(grant.epoch, grant.block_id, grant.chunk_id, step, grant.count)


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    one, other = make(world=1), make(world=4)
    order = [(g.epoch, g.block_id, g.chunk_id) for g in claims(one)]
    assert order == [(g.epoch, g.block_id, g.chunk_id) for g in claims(other)]
    first, second = order[:10], order[10:]
    assert ({e for e, _, _ in first}, {e for e, _, _ in second}) == ({0}, {1})
    assert [c[1:] for c in first] != [c[1:] for c in second]
    assert sorted(c[1:] for c in first) == sorted(c[1:] for c in second)


def test_the_order_of_today_is_the_order_of_tomorrow() -> None:
    """A run resumed by a later Rankdeck must go on in the same order: these numbers may never change."""
    assert [g.block_id * 4 + g.chunk_id for g in claims(make(epochs=1))] == [8, 2, 6, 3, 4, 7, 9, 1, 0, 5]


def test_independent_groups_share_each_epoch_by_ownership() -> None:
    ledger = make(world=3, groups=3)
    for group in range(3):
        for grant in claims(ledger, group):
            index = grant.block_id * 4 + grant.chunk_id
            assert ledger.setup.owner(index, grant.epoch) == group == (index + grant.epoch) % 3
    everything = Counter((g.epoch, g.block_id, g.chunk_id) for group in range(3) for g in claims(ledger, group))
    assert len(everything) == 20
    assert set(everything.values()) == {1}


def test_ranks_of_a_group_get_the_same_answer() -> None:
    ledger = make()
    first = [ledger.claim(0, n) for n in range(5)]
    assert [ledger.claim(0, n) for n in range(5)] == first
    assert [g.sequence for g in first] == [0, 1, 2, 3, 4]


def test_a_claim_out_of_turn_is_refused_and_changes_nothing() -> None:
    ledger = make()
    with pytest.raises(LedgerConflictError):
        ledger.claim(0, 1)
    with pytest.raises(LedgerConflictError):
        ledger.claim(1, 0)
    with pytest.raises(LedgerConflictError):
        ledger.claim(0, -1)
    assert ledger.claim(0, 0) == make().claim(0, 0)


def test_the_epoch_limit_exhausts_a_group_also_for_claims_ahead() -> None:
    ledger = make(epochs=1)
    assert len(claims(ledger)) == 10
    assert [ledger.claim(0, n).exhausted for n in (10, 11, 12, 10)] == [True] * 4


def test_without_a_limit_there_is_always_more() -> None:
    assert len(claims(make(samples=5, chunk=5, epochs=None), limit=50)) == 50


def test_a_group_without_a_chunk_of_its_own_waits_for_an_epoch_that_has_one() -> None:
    ledger = make(samples=5, chunk=5, world=3, groups=3, epochs=None)
    assert [ledger.claim(group, 0).epoch for group in range(3)] == [0, 1, 2]
    one = make(samples=5, chunk=5, world=3, groups=3, epochs=1)
    assert [len(claims(one, group)) for group in range(3)] == [1, 0, 0]


def test_nothing_is_completed_before_a_checkpoint_holds_it() -> None:
    ledger = make()
    grant = ledger.claim(0, 0)
    assert ledger.as_dict()["completed_chunks"] == []
    going = ledger.as_dict()["in_progress_chunks"]
    assert [(c["block_id"], c["chunk_id"], c["samples_done"]) for c in going] == [(grant.block_id, grant.chunk_id, 0)]
    positions = {0: Position(5, 12, [done(grant, 5)])}
    before = ledger.as_dict()
    after = ledger.preview(positions, 3)
    assert ledger.as_dict() == before
    ledger.commit(positions, 3)
    assert ledger.as_dict() == after
    assert after["checkpoint"] == ledger.checkpoint == 3
    chunk = {"block_id": grant.block_id, "chunk_id": grant.chunk_id, "gpu_id": ledger.setup.owner(8, 0), "epoch": 0}
    assert after["completed_chunks"] == [chunk | {"optimizer_step": 5, "steps": grant.count}]
    assert after["in_progress_chunks"] == []


def test_begun_chunks_of_four_groups_are_granted_first_to_one() -> None:
    ledger = make(samples=400, block=100, chunk=10, world=4, groups=4, epochs=1)
    positions, begun = {}, set()
    for group in range(4):
        whole = [ledger.claim(group, sequence) for sequence in range(2 * group)]
        grant = ledger.claim(group, 2 * group)
        partial = [[0, grant.block_id, grant.chunk_id, 3]]
        positions[group] = Position(1, 3, [done(chunk) for chunk in whole], partial)
        begun.add((grant.block_id, grant.chunk_id))
    ledger.commit(positions)
    again = Ledger.from_dict(ledger.as_dict())
    again.change(world=1, groups=1)
    grants = claims(again)
    assert {(g.block_id, g.chunk_id) for g in grants[:4]} == begun
    assert [g.offset for g in grants] == [3] * 4 + [0] * (36 - 12)


def test_ranks_of_one_group_must_stand_at_the_same_place() -> None:
    ledger = make()
    grant = ledger.claim(0, 0)
    same = Position(5, 12, [done(grant)])
    ledger.commit({0: same, 1: same})
    assert ledger.progress().chunks_done == 1
    with pytest.raises(LedgerConflictError):
        ledger.commit({0: same, 1: Position(6, 12, [done(grant)])})


def test_a_committed_claim_cannot_be_asked_for_again() -> None:
    ledger = make()
    first = ledger.claim(0, 0)
    ledger.commit({0: Position(1, 12, [done(first)])})
    with pytest.raises(LedgerConflictError):
        ledger.claim(0, 0)
    assert ledger.claim(0, 1).sequence == 1


@pytest.mark.parametrize(
    "position",
    [
        Position(1, 0, [ChunkDone(1, 2, 0, 1, 12)]),  # not claimed
        Position(1, 0, [], [[0, 2, 0, 13]]),
    ],
)
def test_a_position_that_cannot_be_is_refused_whole(position: Position) -> None:
    ledger = make()
    grants = [ledger.claim(0, 0), ledger.claim(0, 1)]
    assert (grants[0].block_id, grants[0].chunk_id, grants[0].count) == (2, 0, 12)
    before = ledger.as_dict()
    mixed = Position(position.step, 0, [done(grants[1]), *position.completed], position.partial)
    with pytest.raises(LedgerConflictError):
        ledger.commit({0: mixed})
    assert ledger.as_dict() == before


def test_a_finished_ledger_shows_its_last_epoch_whole_and_can_be_extended() -> None:
    training = Training(make(epochs=2))
    training.finish()
    document = training.ledger.as_dict()
    assert document["current_epoch"] == 1
    assert document["blocks_this_epoch"] == [0, 1, 2]
    assert document["total_steps"] == 200
    again = Ledger.from_dict(document)
    assert again.progress().finished
    assert again.claim(0, 0).exhausted
    again.change(epochs=3)
    assert not again.progress().finished
    assert {grant.epoch for grant in claims(again)} == {2}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chunk_size": 6}, ("12 samples", "6 samples")),
        ({"samples_per_block": 50}, ("40 samples", "50 samples")),
        ({"dataset": DATASET | {"sha256": "cd" * 32}}, ("abab", "cdcd")),
        ({"dataset": DATASET | {"size_bytes": 99}}, ("1234", "99")),
        ({"samples": 99}, ("100", "99")),
    ],
)
def test_another_dataset_or_cut_is_refused_with_both_values(change: dict[str, Any], words: tuple[str, str]) -> None:
    same: dict[str, Any] = {"dataset": DATASET, "chunk_size": 12, "samples_per_block": 40, "samples": 100}
    make().check_same(**same)
    make().check_same(**same | {"dataset": DATASET | {"path": "moved elsewhere"}})
    with pytest.raises(StateFileError) as caught:
        make().check_same(**same | change)
    assert all(word in caught.value.cause for word in words)


AIOS: dict[str, Any] = {
    "brain_id": "b",
    "dataset_name": "my_text",
    "completed_chunks": [
        {"block_id": 0, "chunk_id": 1, "gpu_id": 0, "optimizer_step": 10, "steps": 12},
        {"block_id": 0, "chunk_id": 1, "gpu_id": 1, "optimizer_step": 11, "steps": 12},
        {"block_id": 2, "chunk_id": 0, "gpu_id": 1, "optimizer_step": 10, "steps": 12},
    ],
    "started_blocks": [0, 2],
    "completed_blocks": [],
    "current_epoch": 0,
    "blocks_this_epoch": [],
    "total_blocks_in_dataset": 3,
    "total_steps": 36,
    "in_progress_chunks": [{"block_id": 1, "chunk_id": 1, "gpu_id": 0, "timestamp": 1.5}],
}
CUT: dict[str, Any] = {
    "dataset": DATASET, "samples": 100, "samples_per_block": 40, "chunk_size": 12, "seed": 7, "world": 2, "groups": 1,
}  # fmt: skip


def test_an_import_goes_on_where_ai_os_stood() -> None:
    ledger = Ledger.new(**CUT, epochs=1)
    ledger.import_aios(parse_state(AIOS))
    chunks = {(g.block_id, g.chunk_id) for g in claims(ledger)}
    assert len(chunks) == 8
    assert not chunks & {(0, 1), (2, 0)}
    assert (1, 1) in chunks  # claimed there; nobody knows how far it came
    assert ledger.as_dict()["total_steps"] == 36
    ours = Ledger.from_dict(json.loads(json.dumps(ledger.as_dict())))
    assert len(claims(ours)) == 8


def test_an_import_in_a_later_epoch_trains_what_that_epoch_lacks() -> None:
    file = parse_state(AIOS | {"current_epoch": 2, "blocks_this_epoch": [2]})
    ledger = Ledger.new(**CUT, epochs=3)
    ledger.import_aios(file)
    chunks = {(g.block_id, g.chunk_id) for g in claims(ledger)}
    assert len(chunks) == 9
    assert (2, 0) not in chunks
    assert (0, 1) in chunks


@pytest.mark.parametrize(
    ("change", "cut", "words"),
    [
        ({"total_blocks_in_dataset": 5}, {}, ("5", "3")),
        ({}, {"chunk_size": 40}, ("chunk 1 of block 0",)),
    ],
)
def test_an_import_that_does_not_fit_is_refused(
    change: dict[str, Any], cut: dict[str, Any], words: tuple[str, ...]
) -> None:
    ledger = Ledger.new(**CUT | cut)
    with pytest.raises(StateFileError) as caught:
        ledger.import_aios(parse_state(AIOS | change))
    assert all(word in caught.value.cause for word in words)


def test_an_import_is_not_our_own_file() -> None:
    with pytest.raises(StateFileError, match="AI-OS"):
        Ledger.from_dict(AIOS)
