"""Next action when ranks wait for the host: commit once more, merge, or release them. A pure decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from core.protocol.messages import MergeReady, RankDone


class Next(Enum):
    """What the host does next."""

    WAIT = auto()
    COMMIT = auto()
    MERGE = auto()
    RELEASE = auto()
    FINISH = auto()


@dataclass(frozen=True, slots=True)
class Gathered:
    """Which ranks wait, and for what.

    Attributes:
        done: Ranks that train no further.
        ready: Ranks that wait at a merge round; never one that is done.
        world_size: All ranks.
        merges: Whether ranks' weights are merged at all (independent mode with several ranks).
    """

    done: Mapping[int, RankDone]
    ready: Mapping[int, MergeReady]
    world_size: int
    merges: bool

    @property
    def all_wait(self) -> bool:
        """No rank trains."""
        return len(self.done) + len(self.ready) == self.world_size

    @property
    def steps(self) -> dict[int, int]:
        """Where each waiting rank stands."""
        at = {rank: done.step for rank, done in self.done.items()}
        return at | {rank: ready.step for rank, ready in self.ready.items()}

    @property
    def round(self) -> int:
        """The merge round that is due; the last merge of all has no round of its own and is 0."""
        return max((ready.round for ready in self.ready.values()), default=0)


def next_action(
    gathered: Gathered, *, committing: bool, holds_all: bool, merging: bool, merged_steps: Mapping[int, int] | None
) -> Next:
    """What is due.

    Args:
        gathered: The ranks.
        committing: A checkpoint is being made.
        holds_all: The newest committed checkpoint has every rank exactly where it waits.
        merging: Rank 0 is at it.
        merged_steps: Where the ranks stood at the newest merge that is done; None before the first.
    """
    if not gathered.all_wait or committing or merging:
        return Next.WAIT
    merged = merged_steps == gathered.steps
    if gathered.ready and merged:
        return Next.RELEASE
    if not holds_all:
        return Next.COMMIT
    if gathered.ready or (gathered.merges and not merged):
        return Next.MERGE
    return Next.FINISH
