"""Counters that a resumed rank starts from: the saved ones, adapted where the run resumes with other ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.protocol.messages import RankStart

_SEED_STEP: Final = 1_000_003
"""A prime: the seeds of different ranks and steps do not meet."""


def fresh_seed(seed: int, rank: int, step: int) -> int:
    """The seed of a rank that has no saved generators: another one for each rank, and at each step."""
    return seed + 1 + rank + _SEED_STEP * step


def taken_up(
    counters: Mapping[str, Any], start: RankStart | None, rank: int, merge_every: int | None
) -> dict[str, Any]:
    """The counters that a rank resumes with, of those that were saved with the weights that it takes up.

    Merges are due by chunks. So where the replica groups differ, or the chunks from one merge to the next
    (`merge_every`), chunks are counted as if the newest merge had just been. What a rank has learned by itself counts
    from zero where it takes up weights that are not its own. Without the host's word (`start`) they stay as they are.
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
    if not start.same_groups or values.get("merge_every_chunks", merge_every) != merge_every:
        values["chunks_done"] = int(values["merges_done"]) * (merge_every or 0)
    if start.copy != str(rank):
        values["chunks_alone"] = 0
    if not start.copy.isdecimal():
        values["val_loss"] = None  # of one copy among several, or of no copy at all
    return values
