"""Rank barrier: ranks wait there for the host, which commits them together, merges them and lets them end."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Final

from core.checkpoints.store import Checkpoint
from core.host.commits.runner import CommitRunner
from core.host.ranks import Rank, Ranks
from core.protocol.messages import Merge, MergeDone

log = logging.getLogger(__name__)

ASK_AGAIN_S: Final = 2.0


class Next(Enum):
    WAIT = auto()
    COMMIT = auto()
    MERGE = auto()
    FINISH = auto()


def next_action(
    steps: Mapping[int, int],
    *,
    merges: bool,
    committing: bool,
    holds_all: bool,
    merging: bool,
    merged_steps: Mapping[int, int] | None,
) -> Next:
    """Decide the action that is due when no rank trains. Pure.

    `steps`: Each rank's step.
    `merges`: Ranks' weights are merged at all (independent mode with several ranks).
    `holds_all`: The newest committed checkpoint has every rank exactly where it waits.
    `merged_steps`: The ranks' steps at the newest merge that is done; None before the first.
    """
    if committing or merging:
        return Next.WAIT
    if not holds_all:
        return Next.COMMIT
    if merges and merged_steps != steps:
        return Next.MERGE
    return Next.FINISH


class RankBarrier:
    def __init__(self, ranks: Ranks, commits: CommitRunner) -> None:
        self._ranks = ranks
        self._commits = commits
        self._asked_at = 0.0
        self._merging: dict[int, int] | None = None
        self._merged_steps: dict[int, int] | None = None
        self._merged: Path | None = None

    def step(self, now: float) -> tuple[Next, str]:
        """Carry out the action that is due, but for `FINISH`; return it and the new phase (empty: unchanged)."""
        steps = {rank.number: rank.done.step for rank in self._ranks if rank.done is not None}
        if any(rank.done is None for rank in self._ranks):
            self._asked_at = now
            return Next.WAIT, ""
        if self._ranks.run.recipe.self_contained:
            return Next.FINISH, ""  # it has saved what it wanted to save
        action = next_action(
            steps,
            merges=self._ranks.run.replica_groups > 1,
            committing=self._commits.coordinator.busy,
            holds_all=self._commits.coordinator.holds(steps),
            merging=self._merging is not None,
            merged_steps=self._merged_steps,
        )
        if self._commits.coordinator.busy or action is Next.COMMIT:
            return action, self._complete_commit(action, now)
        if action is Next.MERGE and self._commits.newest is not None:
            return action, self._merge(steps, self._commits.newest)
        return action, ""

    def merge_done(self, rank: Rank, message: MergeDone) -> None:
        newest = self._commits.newest
        if self._merging is None or rank.number != 0 or newest is None or Path(message.file).name != message.file:
            log.warning("rank %d reports a merge that was not requested", rank.number)
            return
        self._merged_steps, self._merging = self._merging, None
        self._merged = newest.folder / message.file

    def model(self, resumed: Checkpoint | None) -> tuple[Path, ...]:
        """The weights to export: the last merge, or the newest checkpoint's by rank 0; empty if not finite."""
        if self._merged is not None and self._merged_steps is not None:
            return (self._merged,)
        kept = self._commits.newest or resumed
        if kept is not None and kept.diverged:
            return ()
        return () if kept is None else kept.weights()

    def _complete_commit(self, action: Next, now: float) -> str:
        """Ask for a checkpoint that holds every waiting rank, and again if it stalls.

        A checkpoint stalls when a rank's part of the one before could not be written: that rank believes it is done.
        """
        limit_s = ASK_AGAIN_S if self._commits.coordinator.busy or self._commits.retry_at is not None else 0.0
        if now - self._asked_at < limit_s or not self._commits.coordinator.missing:
            return ""
        self._asked_at = now + (ASK_AGAIN_S if action is Next.COMMIT else 0.0)
        self._commits.ask_missing("every rank waits")
        return "saving"

    def _merge(self, steps: dict[int, int], newest: Checkpoint) -> str:
        self._merging = steps
        self._ranks[0].send(Merge(newest.number, str(newest.folder)))
        return "merging"
