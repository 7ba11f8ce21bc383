"""A rank's side of a commit: ask, copy the state at the boundary, write it while training continues."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from core.fault_points import reach
from core.protocol.messages import CommitBegin, CommitFailed, CommitStaged, CommitTo, Position
from workers.host_link.inbox import Inbox
from workers.host_link.reporter import Reporter
from workers.training.checkpoint import Part, write_part

BUSY: Final = -1
# This rank has diverged, and the part that it wrote last stands for it.
KEPT: Final = -2
# A run that dies young has a checkpoint all the same, and a disk that takes none is found out early.
FIRST_AFTER_S: Final = 60.0
_ASK_AGAIN_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """A rank's offer of its part of a checkpoint.

    Attributes:
        take: Copies the state; called once the host has agreed.
        position: The position in the data, for the checkpoint that the host named.
        val_loss: Of this very step, or None.
        round: Local SGD rounds done; parts of one checkpoint are of the same round.
        diverged: The weights are not finite.
    """

    step: int
    reason: str
    take: Callable[[], Part]
    position: Callable[[int], Position]
    val_loss: float | None = None
    round: int = 0
    diverged: bool = False


class Commits:
    """Stages this rank's parts, one checkpoint after the other.

    Attributes:
        last: The newest part that was begun; None before the first of this attempt.
        newest: The number of its checkpoint; 0 before the first.
        considered: The step of the newest part that was begun or left out; None before the first.
    """

    def __init__(self, reporter: Reporter, inbox: Inbox) -> None:
        self.last: CommitRequest | None = None
        self.newest = 0
        self.considered: int | None = None
        self._reporter = reporter
        self._inbox = inbox
        self._writer: threading.Thread | None = None
        self._error: BaseException | None = None
        self._last_s = time.monotonic()

    def is_due(self, every_s: float) -> bool:
        """Whether the last commit was begun `every_s` seconds ago; the first of an attempt comes after a minute."""
        if self.newest == 0:
            every_s = min(every_s, FIRST_AFTER_S)
        return time.monotonic() - self._last_s >= every_s

    def reset_age(self) -> None:
        """Count from now on, because a commit was voted for."""
        self._last_s = time.monotonic()

    def begin(self, request: CommitRequest, *, join: bool = False) -> int:
        """Ask for a checkpoint and stage this rank's part of it in the background.

        Returns `BUSY` when the one before is still being made, or `KEPT`. `join`: begins none, only takes part in one.
        """
        self._reporter.send(CommitBegin(request.step, request.reason, request.round, join, request.diverged))
        answer = self._inbox.wait_for(CommitTo)
        number = answer.checkpoint
        if number < 0:
            return number
        # A request that came meanwhile gets this checkpoint, not one more.
        self._inbox.commit_asked = False
        self.wait_written()
        self.last, self.newest = request, number
        self.considered = request.step
        self.reset_age()
        # The copy is all that training waits for: a thread writes, syncs and hashes it while the next steps run.
        part = request.take()
        staged = CommitStaged(number, request.position(number), [], request.val_loss, request.diverged)
        self._writer = threading.Thread(
            target=self._write, args=(Path(answer.folder), part, staged), name=f"saver-{number}"
        )
        self._writer.start()
        return number

    def begin_when_free(self, request: CommitRequest) -> int:
        """As `begin`, but asks again until the host is free."""
        while (begun := self.begin(request)) == BUSY:
            self._inbox.wait(_ASK_AGAIN_S)
        return begun

    def leave_out(self, step: int, round_: int, *, alone: bool) -> None:
        """Take no part in a checkpoint, as this rank has diverged.

        `alone`: other ranks may be making one and wait for this one's part; ranks in step all leave it out.
        """
        self.considered = step
        self.reset_age()
        if alone:
            self._reporter.send(CommitBegin(step, "diverged", round_, join=True, diverged=True))
            self._inbox.wait_for(CommitTo)

    def wait_written(self) -> None:
        """Wait for the part that is being written; raise what went wrong there that is not the disk's fault."""
        if self._writer is not None:
            self._writer.join()
            self._writer = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _write(self, folder: Path, part: Part, staged: CommitStaged) -> None:
        try:
            files = write_part(folder, part)
            self._reporter.send(replace(staged, files=files))
            reach("after_staged", part.step)
        except OSError as error:
            self._reporter.send(CommitFailed(staged.checkpoint, _cause(error, folder)))
        except BaseException as error:  # raised in the training thread, see wait_written
            self._error = error


def _cause(error: OSError, folder: Path) -> str:
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        return f"The disk that holds {folder} is full."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"Files cannot be written to {folder}: no permission."
    return f"Files could not be written to {folder} ({error})."
