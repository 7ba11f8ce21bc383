"""Restore plan: the weights that each rank of the next attempt restores, and the step that it continues from.

Most modes keep one set of weights, which any number of ranks in any mode reads. Ranks that train independently keep a
copy each, and each continues with its own. If fewer sets are wanted, one is chosen (`RestorePlan.copies`), without what
the others learned. The ledger counts their chunks as trained all the same: nothing is trained twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.checkpoints.state_header import read_values
from core.checkpoints.store import Checkpoint
from core.config.mode import Mode
from core.formatting import listed

AVERAGE: Final = "average"


@dataclass(frozen=True, slots=True)
class Copy:
    """One rank's weights among several; it `has_learned_alone` if it trained since all copies were alike."""

    rank: int
    step: int
    samples_seen: int
    has_learned_alone: bool
    val_loss: float | None
    val_step: int | None
    synchronised: bool

    @property
    def quality(self) -> str:
        if self.val_loss is None:
            return f"{self.samples_seen:,} samples seen"
        at = "" if self.val_step in (None, self.step) else f", measured at step {self.val_step:,}"
        return f"validation loss {self.val_loss:.4g}{at}"


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """An attempt's way to restore a checkpoint.

    Attributes:
        copies: For each rank the source of its weights and optimizer state: a rank's number, "average", or empty where
            there is one set only.
        steps: For each rank the optimizer steps behind it when it begins.
        same_groups: There are as many replica groups as before, so each one keeps its own counters.
        note: A sentence about the weights; empty where nothing is chosen or left out.
    """

    copies: tuple[str, ...]
    steps: tuple[int, ...]
    same_groups: bool = True
    note: str = ""


def policy_for(policy: str, fell_back: bool) -> str:
    """Return the merge policy for a checkpoint's copies: those that a fallback trained apart are never averaged."""
    return "best" if fell_back and policy == AVERAGE else policy


def plan_restore(
    checkpoint: Checkpoint | None,
    mode: str,
    world: int,
    policy: str,
    *,
    synchronise: bool = False,
    name: Callable[[int], str] = "rank {}".format,
) -> RestorePlan:
    """Plan what each of `world` ranks in `mode` restores of `checkpoint`; None starts with fresh weights.

    A rank that continues with its own copy starts at that copy's step. One that takes another rank's copy starts at
    the highest step of all, so that no curve runs backwards.

    `policy`: The merge policy: "best" and "none" choose the copy with the lowest validation loss (where none was
    measured, the one with the most samples seen), "average" the mean of all. Copies that were synchronised at
    an interval are averaged in any case: that is what the next round would have done.
    `synchronise`: Copies are synchronised at an interval from now on. Copies that never were are too far apart to be
    averaged, so all ranks start with one of them.
    `name`: Names the ranks that wrote the copies in the note.
    """
    if checkpoint is None:
        return RestorePlan(("",) * world, (0,) * world)
    then, now = _groups(checkpoint.mode, checkpoint.world_size), _groups(mode, world)
    if then == 1:
        return RestorePlan(("",) * world, (checkpoint.step,) * world, same_groups=now == 1)
    copies = _copies(checkpoint)
    if now < then or (synchronise and not any(copy.synchronised for copy in copies)):
        return _plan_one_copy(copies, world, checkpoint.step, policy, name)
    new = range(then, now)
    note = ""
    if new:
        best = _best(copies)
        more = "1 more device starts" if len(new) == 1 else f"{len(new)} more devices start"
        note = f"{more} from the copy of {name(best.rank)} ({best.quality})"
    return RestorePlan(
        (*map(str, range(then)), *(str(_best(copies).rank) for _ in new)),
        (*(copy.step for copy in copies), *(checkpoint.step for _ in new)),
        same_groups=not new,
        note=note,
    )


def _plan_one_copy(
    copies: Sequence[Copy], world: int, step: int, policy: str, name: Callable[[int], str]
) -> RestorePlan:
    if policy == AVERAGE or any(copy.synchronised for copy in copies):
        note = f"the average of the copies of {listed([name(copy.rank) for copy in copies])}"
        return RestorePlan((AVERAGE,) * world, (step,) * world, same_groups=False, note=note)
    best = _best(copies)
    note = f"the copy of {name(best.rank)} ({best.quality})"
    if others := [name(copy.rank) for copy in copies if copy is not best and copy.has_learned_alone]:
        lost = f"what {listed(others)} learned alone is missing from these weights"
        note += f"; {lost}, though its samples count as trained"
    return RestorePlan((str(best.rank),) * world, (step,) * world, same_groups=False, note=note)


def best_copy(checkpoint: Checkpoint) -> Copy:
    return _best(_copies(checkpoint))


def _copies(checkpoint: Checkpoint) -> list[Copy]:
    return [_copy(checkpoint, rank) for rank in range(checkpoint.world_size)]


def _best(copies: Sequence[Copy]) -> Copy:
    measured = [copy for copy in copies if copy.val_loss is not None]
    if measured:
        return min(measured, key=lambda copy: (copy.val_loss, copy.rank))
    return max(copies, key=lambda copy: (copy.samples_seen, -copy.rank))


def _copy(checkpoint: Checkpoint, rank: int) -> Copy:
    counters = read_values(checkpoint.folder / f"rank{rank}.safetensors").get("counters")
    values: dict[str, Any] = counters if isinstance(counters, dict) else {}
    position = checkpoint.positions.get(rank)
    val_loss = values.get("val_loss")
    measured = isinstance(val_loss, float) and math.isfinite(val_loss)
    return Copy(
        rank=rank,
        step=checkpoint.step if position is None else position.step,
        samples_seen=0 if position is None else position.samples_seen,
        has_learned_alone=values.get("chunks_alone") != 0 or (position is not None and bool(position.partial)),
        val_loss=val_loss if measured else None,
        val_step=values.get("val_step") if measured else None,
        synchronised=bool(values.get("sync_every")),
    )


def _groups(mode: str, world: int) -> int:
    return Mode.read(mode).replica_groups(world)
