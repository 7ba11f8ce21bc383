"""What a rank counts on from when it goes on: saved numbers, or, after a change of lanes, numbers that fit those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.protocol.messages import RankStart

_SEED_STEP: Final = 1_000_003
"""A prime: the seeds of different ranks and steps do not meet."""


def fresh_seed(seed: int, rank: int, step: int) -> int:
    """The seed of a rank that has no generators to go on with: another one for each rank, and at each step."""
    return seed + 1 + rank + _SEED_STEP * step


def taken_up(
    counters: Mapping[str, Any], start: RankStart | None, rank: int, merge_every: int | None
) -> dict[str, Any]:
    """The counters a rank goes on with.

    Rounds of merging are told by chunks, so where the lanes are others, or the chunks from one merge to the next, they
    are counted as if the newest merge had just been. What a rank has learned by itself begins anew where it takes up
    weights that are not its own.

    Args:
        counters: As they were saved with the weights that it takes up.
        start: The host's word; None takes them as they are.
        rank: This one.
        merge_every: Chunks from one merge to the next, from now on.
    """
    values = dict(counters)
    if start is None:
        return values
    values["step"] = start.step
    if start.samples_seen is not None:
        gained = start.samples_seen - int(values["samples_seen"])
        values["samples_seen"] = start.samples_seen
        if values.get("dial"):
            values["dial"] = {**values["dial"], "samples_at": int(values["dial"]["samples_at"]) + gained}
    if not start.same_lanes or values.get("merge_every_chunks", merge_every) != merge_every:
        values["chunks_done"] = int(values["merges_done"]) * (merge_every or 0)
    if start.copy != str(rank):
        values["chunks_alone"] = 0
    if not start.copy.isdecimal():
        values["val_loss"] = None  # of one copy among several, or of no copy at all
    return values
