"""What is due when ranks wait for the host."""

from __future__ import annotations

import pytest

from core.host.commits.gathering import Gathered, Next, next_action
from core.protocol.messages import MergeReady, RankDone

pytestmark = pytest.mark.windows

DONE = {0: RankDone(20, True), 1: RankDone(30, True)}
READY = {0: MergeReady(1, 20), 1: MergeReady(1, 30)}

ACTIONS = [
    # who is done, who waits for a merge, merges at all, committing, holds all, merging, merged at, → what next
    ({0: DONE[0]}, {}, False, False, False, False, None, Next.WAIT),
    (DONE, {}, False, True, False, False, None, Next.WAIT),
    (DONE, {}, False, False, False, False, None, Next.COMMIT),
    (DONE, {}, False, False, True, False, None, Next.FINISH),
    (DONE, {}, True, False, False, False, None, Next.COMMIT),
    (DONE, {}, True, False, True, False, None, Next.MERGE),
    (DONE, {}, True, False, True, True, None, Next.WAIT),
    (DONE, {}, True, False, True, False, {0: 20, 1: 30}, Next.FINISH),
    (DONE, {}, True, False, True, False, {0: 10, 1: 30}, Next.MERGE),
    ({}, READY, True, False, False, False, None, Next.COMMIT),
    ({}, READY, True, False, True, False, None, Next.MERGE),
    ({}, READY, True, False, True, False, {0: 20, 1: 30}, Next.RELEASE),
    ({}, {0: READY[0]}, True, False, True, False, None, Next.WAIT),
    ({1: DONE[1]}, {0: READY[0]}, True, False, True, False, None, Next.MERGE),
    ({1: DONE[1]}, {0: READY[0]}, True, False, True, False, {0: 20, 1: 30}, Next.RELEASE),
]


@pytest.mark.parametrize(("done", "ready", "merges", "committing", "holds", "merging", "merged", "then"), ACTIONS)
def test_what_is_due_when_ranks_wait(
    done: dict[int, RankDone],
    ready: dict[int, MergeReady],
    merges: bool,
    committing: bool,
    holds: bool,
    merging: bool,
    merged: dict[int, int] | None,
    then: Next,
) -> None:
    gathered = Gathered(done, ready, 2, merges)
    found = next_action(gathered, committing=committing, holds_all=holds, merging=merging, merged_steps=merged)
    assert found is then
