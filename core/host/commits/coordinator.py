"""Commit coordinator: the pure half of a commit. The effects (folders, manifests, sockets) are the host's.

It is a two-phase commit (https://en.wikipedia.org/wiki/Two-phase_commit_protocol) in which the manifest decides: what a
lost rank or host leaves without one never counts. One checkpoint is open at a time. It goes through three phases:

* **opening**: a rank stands at a step boundary and wants to commit; the host makes the folder;
* **staging**: every rank writes its part (training continues meanwhile) and says so;
* **writing**: all parts lie on disk; the host writes ledger copy and manifest. With the manifest it exists.

In any phase it may be *dropped*: a rank could not write its part, or died. Training continues; the host asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from core.protocol.messages import CommitStaged

log = logging.getLogger(__name__)

# Answer to a rank that cannot commit now; it continues training and asks again later.
BUSY: Final = -1
# Answer to a rank that has diverged: the part that it wrote last stands for it, so it has nothing to write.
KEPT: Final = -2


class CommitEffects(Protocol):
    """Effects that the coordinator requests. None of them may call back into it before it returns."""

    def open_checkpoint(self, reason: str) -> None:
        """Make the next checkpoint's folder, then call `CommitCoordinator.opened` or `open_failed`."""

    def answer(self, rank: int, checkpoint: int, folder: str) -> None:
        """Send `CommitTo`."""

    def ask(self, rank: int, reason: str) -> None:
        """Send `CommitPlease`."""

    def write_checkpoint(self, checkpoint: int, parts: Mapping[int, CommitStaged]) -> None:
        """Write ledger copy and manifest, then call `CommitCoordinator.written` or `write_failed`."""

    def drop_checkpoint(self, checkpoint: int, folder: str, cause: str, *, retry: bool = True) -> None:
        """Remove the leftovers of a checkpoint that will not be; `checkpoint` is negative if it had no folder yet.

        `retry`: try again soon. It is of no use where a rank has diverged, which has said so itself.
        """


@dataclass(slots=True, eq=False)
class _Open:
    reason: str
    phase: Literal["opening", "staging", "writing", "over"] = "opening"
    number: int = BUSY
    folder: str = ""
    round: int = 0
    joined: dict[int, int] = field(default_factory=dict)
    staged: dict[int, CommitStaged] = field(default_factory=dict)


class CommitCoordinator:
    """Answers `CommitBegin` so that the parts of a checkpoint belong together.

    Ranks that train in step must get the same answer to the same question, or a checkpoint would mix two steps and
    another would never be whole. The question is "step s, for the k-th time" (a rank that was told *busy* at its last
    step asks again), so the answers of each step are kept as a list and every rank walks down the same one.

    Args:
        world_size: Ranks whose parts make a checkpoint.
        synchronised: All ranks train in step (one replica group). Else each has a replica group of its own, and the
            first that begins has the others asked to join at their own next boundary.

    Attributes:
        newest: Each rank's part in the newest checkpoint of this attempt.
    """

    _STEPS_REMEMBERED: Final = 4
    """Ranks in step are at most one step apart, since each step sums their gradients; the rest is a margin."""

    def __init__(self, world_size: int, *, synchronised: bool, effects: CommitEffects) -> None:
        self._world_size = world_size
        self._synchronised = synchronised
        self._effects = effects
        self._open: _Open | None = None
        self._answers: dict[int, list[_Open | None]] = {}
        self._asked: dict[tuple[int, int], int] = {}
        self._carried: dict[int, CommitStaged] = {}
        self.newest: dict[int, CommitStaged] = {}
        self._abandoned = False

    @property
    def busy(self) -> bool:
        return self._open is not None

    @property
    def missing(self) -> list[int]:
        """Ranks that have not joined the checkpoint in progress; all of them if none is in progress."""
        joined = {} if self._open is None else self._open.joined
        return [rank for rank in range(self._world_size) if rank not in joined and rank not in self._carried]

    def holds(self, steps: Mapping[int, int]) -> bool:
        """Whether the newest committed checkpoint has every rank at exactly these steps, or its stand-in."""
        at = {rank: part.position.step for rank, part in self.newest.items()}
        return all(rank in at and (at[rank] == step or rank in self._carried) for rank, step in steps.items())

    # what ranks say

    def begin(
        self, rank: int, step: int, reason: str, round_: int = 0, join: bool = False, diverged: bool = False
    ) -> None:
        # It lives on until its process is ended, and would leave an unfinished folder.
        if self._abandoned:
            self._effects.answer(rank, BUSY, "")
            return
        if diverged and not self._synchronised and self._begin_diverged(rank, step, round_, join):
            return
        if self._synchronised:
            chosen = self._choose_in_step(rank, step, reason)
        else:
            chosen = self._choose_alone(rank, reason, round_, join)
        if chosen is None or chosen.phase == "over" or rank in chosen.joined:
            self._effects.answer(rank, BUSY, "")
            return
        chosen.joined[rank] = step
        if chosen.phase == "staging":
            self._effects.answer(rank, chosen.number, chosen.folder)

    def staged(self, rank: int, part: CommitStaged) -> None:
        current = self._open
        if current is None or current.number != part.checkpoint or current.phase != "staging":
            log.info("rank %d staged checkpoint %d, which is no longer being made", rank, part.checkpoint)
            return
        current.staged[rank] = part
        self._write_if_whole(current)

    def failed(self, rank: int, checkpoint: int, cause: str) -> None:
        if self._open is not None and self._open.number == checkpoint and self._open.phase == "staging":
            self._drop(f"Rank {rank} could not write its part: {cause}")

    def rank_lost(self, rank: int) -> None:
        current = self._open
        if current is not None and current.phase != "writing" and rank not in current.staged:
            self._drop(f"Rank {rank} exited before its part was written.")

    def carry(self, rank: int, part: CommitStaged) -> None:
        """Let checkpoints hold the last part of a rank that is gone, so that the other groups can commit once more.

        The host copies the files (`write_checkpoint` names the part as it was).
        """
        self._carried[rank] = part
        current = self._open
        if current is not None and current.phase != "writing" and rank not in current.staged:
            # Begun after it was gone, and before that was known.
            current.staged[rank] = part
            self._write_if_whole(current)

    def abandon(self, cause: str) -> None:
        """End commits with the attempt: drop a checkpoint that is not being written yet, and begin no new one."""
        self._abandoned = True
        if self._open is not None and self._open.phase != "writing":
            self._drop(cause)

    # what the host's effects came to

    def opened(self, checkpoint: int, folder: str) -> None:
        current = self._open
        if current is None or current.phase != "opening":
            self._effects.drop_checkpoint(checkpoint, folder, "It was no longer wanted.")
            return
        current.number, current.folder, current.phase = checkpoint, folder, "staging"
        for rank in current.joined:
            self._effects.answer(rank, checkpoint, folder)

    def open_failed(self, cause: str) -> None:
        if self._open is not None and self._open.phase == "opening":
            self._drop(cause)

    def written(self, checkpoint: int) -> None:
        current = self._open
        if current is not None and current.number == checkpoint:
            self.newest = dict(current.staged)
            # One that was being written when a rank was lost may hold a newer part of that rank.
            self._carried = {rank: current.staged[rank] for rank in self._carried}
            current.phase, self._open = "over", None

    def write_failed(self, checkpoint: int, cause: str) -> None:
        if self._open is not None and self._open.number == checkpoint:
            self._drop(cause)

    # inside

    def _begin_diverged(self, rank: int, step: int, round_: int, join: bool) -> bool:
        """Answer a rank with a replica group of its own whose weights are not finite; False: it may write them.

        Its last good part stands for it: the other ranks' work is committed, and its own since then is trained again.
        Parts of one checkpoint are of one round, so between rounds there is nothing to fall back on.
        """
        part = self.newest.get(rank) if round_ == 0 else None
        if join:
            current = self._open
            if current is not None and current.phase != "writing" and rank not in current.joined:
                if part is None:
                    self._drop(f"The weights of rank {rank} are not finite at step {step}.", retry=False)
                elif rank not in current.staged:
                    current.staged[rank] = part
                    self._write_if_whole(current)
            self._effects.answer(rank, KEPT, "")
            return True
        if part is None:
            return False
        self.carry(rank, part)
        self._effects.answer(rank, KEPT, "")
        return True

    def _choose_alone(self, rank: int, reason: str, round_: int, join: bool) -> _Open | None:
        current = self._open
        if current is not None and current.joined and rank not in current.joined and current.round != round_:
            # Ranks see to it that this cannot be (workers.training.independent.local_sgd); a checkpoint mixed of two
            # rounds would lose exactness.
            self._drop(f"Rank {rank} is in round {round_} and the others committed in round {current.round}.")
            return None
        if self._open is None:
            if join:
                return None
            opened = self._start(reason)
            opened.round = round_
            for other in range(self._world_size):
                if other != rank and other not in self._carried:
                    self._effects.ask(other, f"rank {rank} commits")
            return opened
        return self._open

    def _choose_in_step(self, rank: int, step: int, reason: str) -> _Open | None:
        # Messages of ranks come in any order. The k-th question of each at this step gets the k-th answer, whichever
        # came first: otherwise one rank might write a part of this step while another is told to train on.
        turn = self._asked.get((rank, step), 0)
        self._asked[rank, step] = turn + 1
        answers = self._answers.setdefault(step, [])
        if turn < len(answers):
            return answers[turn]
        current = self._open
        if (
            current is not None
            and current.joined
            and rank not in current.joined
            and step not in current.joined.values()
        ):
            self._drop(f"Rank {rank} is at step {step} and did not join the others at {current.joined}.")
        answers.append(self._start(reason) if self._open is None else None)
        self._forget_old_steps()
        return answers[turn] if turn < len(answers) else None

    def _write_if_whole(self, current: _Open) -> None:
        if current.phase == "staging" and len(current.staged) == self._world_size:
            current.phase = "writing"
            self._effects.write_checkpoint(current.number, current.staged)

    def _start(self, reason: str) -> _Open:
        self._open = _Open(reason)
        self._open.staged.update(self._carried)
        self._effects.open_checkpoint(reason)
        return self._open

    def _drop(self, cause: str, *, retry: bool = True) -> None:
        current = self._open
        assert current is not None
        # Once it is staging, each rank that joined has its answer and trains on. It is not told of the drop: its part
        # goes with the folder.
        waiting = list(current.joined) if current.phase == "opening" else []
        current.phase, self._open = "over", None
        for rank in waiting:
            self._effects.answer(rank, BUSY, "")
        self._effects.drop_checkpoint(current.number, current.folder, cause, retry=retry)

    def _forget_old_steps(self) -> None:
        while len(self._answers) > self._STEPS_REMEMBERED:
            oldest = min(self._answers)
            del self._answers[oldest]
            self._asked = {key: count for key, count in self._asked.items() if key[1] != oldest}
