"""Rank barrier: ranks wait there for the host, which commits them together, merges them and lets them end."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from core.checkpoints.store import Checkpoint
from core.host.commits.runner import CommitRunner
from core.host.ranks import Rank, Ranks
from core.protocol.messages import Merge, MergeDone

log = logging.getLogger(__name__)

ASK_AGAIN_S: Final = 2.0


class RankBarrier:
    def __init__(self, ranks: Ranks, commits: CommitRunner) -> None:
        self._ranks = ranks
        self._commits = commits
        self._asked_at = 0.0
        self._merging: dict[int, int] | None = None
        self._merged_steps: dict[int, int] | None = None
        self._merged: Path | None = None

    def step(self, now: float) -> tuple[bool, str]:
        """Do what is due when no rank trains; return whether ranks may end, and the new phase (empty: unchanged)."""
        if any(rank.done is None for rank in self._ranks):
            self._asked_at = now
            return False, ""
        if self._ranks.run.recipe.self_contained:
            return True, ""  # it has saved what it wanted to save
        steps = {rank.number: rank.done.step for rank in self._ranks if rank.done is not None}
        coordinator, newest = self._commits.coordinator, self._commits.newest
        if coordinator.busy:
            return False, self._complete_commit(now)
        if self._merging is not None:
            return False, ""
        if newest is None or not coordinator.holds(steps):
            return False, self._complete_commit(now)
        if self._ranks.run.replica_groups > 1 and self._merged_steps != steps:
            return False, self._merge(steps, newest)
        return True, ""

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

    def _complete_commit(self, now: float) -> str:
        """Ask for a checkpoint that holds every waiting rank, and again if it stalls.

        A checkpoint stalls when a rank's part of the one before could not be written: that rank believes it is done.
        """
        coordinator = self._commits.coordinator
        limit_s = ASK_AGAIN_S if coordinator.busy or self._commits.retry_at is not None else 0.0
        if now - self._asked_at < limit_s or not coordinator.missing:
            return ""
        self._asked_at = now if coordinator.busy else now + ASK_AGAIN_S
        self._commits.ask_missing("every rank waits")
        return "saving"

    def _merge(self, steps: dict[int, int], newest: Checkpoint) -> str:
        self._merging = steps
        self._ranks[0].send(Merge(newest.number, str(newest.folder)))
        return "merging"
