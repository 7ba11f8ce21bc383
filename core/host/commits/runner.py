"""The effects of commits: folders, manifests and ledger on a disk thread, answers and events on the loop."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from core.checkpoints.store import Checkpoint
from core.errors import RankdeckError
from core.fault_points import reach
from core.files.atomic import copy_atomic
from core.host.commits.coordinator import CommitCoordinator
from core.host.commits.ledger_keeper import LedgerKeeper, write_ledger
from core.host.ranks import Ranks
from core.host.services import HostServices, logging_failure
from core.protocol.messages import CommitPlease, CommitStaged, Committed, CommitTo, Position

log = logging.getLogger(__name__)

# After a checkpoint that could not be written, ranks are asked for another one.
RETRY_S: Final = 5.0
METRICS_TIMEOUT_S: Final = 2.0
SAME_ALERT_S: Final = 60.0
_NUMBERS: Final = re.compile(r"\d+")

T = TypeVar("T")


class CommitRunner:
    """Carries out the decisions of a `CommitCoordinator`; one for each attempt.

    Attributes:
        newest_good: The newest with finite weights, from which a run can be resumed.
        retry_at: When ranks are to be asked again after a failed commit; None when none failed since the last.
        trouble: Why the newest commit failed; empty when none failed since the last that succeeded.
    """

    def __init__(
        self,
        services: HostServices,
        keeper: LedgerKeeper,
        ranks: Ranks,
        keep: int,
        pinned: Callable[[Sequence[Checkpoint]], Collection[int]] = lambda _: (),
    ) -> None:
        self.coordinator = CommitCoordinator(len(ranks.all), synchronised=ranks.synchronised, effects=self)
        self.newest: Checkpoint | None = None
        self.newest_good: Checkpoint | None = None
        self.retry_at: float | None = None
        self.trouble = ""
        self.quiet = False
        self._services = services
        self._checkpoints = services.checkpoints
        self._keeper = keeper
        self.keep = keep
        self._pinned = pinned
        self._pruning = 0
        self._ranks = ranks
        self._tasks: set[asyncio.Task[None]] = set()
        self._alerted: tuple[str, float] = ("", 0.0)
        self._writing_ledger = False

    def tick(self, now: float) -> None:
        if self.retry_at is not None and now >= self.retry_at:
            self.ask_missing("the commit before failed")
        if not self._writing_ledger and (document := self._keeper.due()) is not None:
            self._writing_ledger = True
            self._start(lambda: write_ledger(self._keeper.path, document), self._ledger_written, self._ledger_failed)

    def ask_missing(self, reason: str) -> None:
        self.retry_at = None
        for rank in self.coordinator.missing:
            self.ask(rank, reason)

    @property
    def is_settled(self) -> bool:
        return not self.coordinator.busy and not self._pruning

    def prune(self) -> None:
        keep, pinned, checkpoints = self.keep, self._pinned, self._checkpoints
        self._pruning += 1
        self._start(lambda: checkpoints.prune(keep, pinned(checkpoints.list())), self._pruned, self._prune_failed)

    def carry(self, rank: int) -> bool:
        """Continue to commit with the last part of a rank that is gone; False when there is no such part."""
        part = self.coordinator.newest.get(rank)
        if part is not None:
            self.coordinator.carry(rank, part)
        return part is not None

    async def settle(self, timeout_s: float) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)

    async def remove_unfinished(self, timeout_s: float) -> None:
        """Remove the files of an abandoned commit; call it once no rank is alive.

        A rank that still writes into the folder makes the removal fail: by a file that appears between the listing and
        the rmdir (ENOTEMPTY), or that is open (Windows).
        """
        self._start(self._checkpoints.remove_unfinished)
        await self.settle(timeout_s)

    # CommitEffects

    def open_checkpoint(self, reason: str) -> None:
        log.info("a checkpoint is begun: %s", reason)
        self._start(
            self._checkpoints.begin,
            lambda made: self.coordinator.opened(made[0], str(made[1])),
            lambda error: self.coordinator.open_failed(error.cause),
        )

    def answer(self, rank: int, checkpoint: int, folder: str) -> None:
        self._ranks[rank].send(CommitTo(checkpoint, folder))

    def ask(self, rank: int, reason: str) -> None:
        self._ranks[rank].send(CommitPlease(reason))

    def write_checkpoint(self, checkpoint: int, parts: Mapping[int, CommitStaged]) -> None:
        positions = {rank: part.position for rank, part in parts.items()}
        staged = dict(parts)

        older = self.newest
        carried = [part for part in staged.values() if part.checkpoint != checkpoint]

        def write() -> Checkpoint:
            if older is not None:
                for file in (file for part in carried for file in part.files):
                    copy_atomic(older.folder / file.name, self._checkpoints.dir / str(checkpoint) / file.name)
            # The steps that a checkpoint holds have their lines before it is one.
            if not self._services.stream.settle(METRICS_TIMEOUT_S):
                log.warning("checkpoint %d is committed before all metrics up to it are on the disk", checkpoint)
            reach("before_manifest", checkpoint)
            devices, mode = [rank.command.device.uuid for rank in self._ranks], self._ranks.run.mode
            made = self._checkpoints.commit(checkpoint, staged, ledger, mode=mode, devices=devices)
            reach("manifest_written", checkpoint)
            return made

        try:
            ledger = self._keeper.preview(positions, checkpoint)
        except RankdeckError as error:
            log.error("checkpoint %d cannot be committed: %s", checkpoint, error.cause)
            asyncio.get_running_loop().call_soon(self.coordinator.write_failed, checkpoint, error.cause)
            return
        self._start(
            write,
            lambda made: self._written(made, positions, ledger),
            lambda error: self.coordinator.write_failed(checkpoint, error.cause),
        )

    def drop_checkpoint(self, checkpoint: int, folder: str, cause: str, *, retry: bool = True) -> None:
        log.warning("checkpoint %d (%s) is left out: %s", checkpoint, folder, cause)
        if checkpoint > 0:
            self._start(lambda: self._checkpoints.abandon(checkpoint))
        if self.quiet or not retry:
            return
        now = time.monotonic()
        self.retry_at, self.trouble = now + RETRY_S, cause
        # An alert about the same trouble with other numbers would say nothing new.
        same = _NUMBERS.sub("", cause)
        if self._alerted[0] != same or now - self._alerted[1] > SAME_ALERT_S:
            self._alerted = (same, now)
            self._services.stream.emit(
                "alert",
                kind="commit_failed",
                title="A checkpoint could not be saved",
                cause=cause,
                next_step="Training continues and Rankdeck tries again. Free some space if the disk is full.",
            )

    # inside

    def _written(self, made: Checkpoint, positions: Mapping[int, Position], ledger: dict[str, Any]) -> None:
        self._keeper.commit(positions, made.number)
        self._start(lambda: write_ledger(self._keeper.path, ledger, made.number), failed=self._ledger_failed)
        self.newest, self.retry_at, self.trouble = made, None, ""
        self.newest_good = self.newest_good if made.diverged else made
        self._services.stream.emit(
            "commit",
            checkpoint=made.number,
            step=made.step,
            val_loss=made.val_loss,
            bytes=made.size_bytes,
            **({"diverged": list(made.diverged)} if made.diverged else {}),
        )
        self.coordinator.written(made.number)
        self._ranks.broadcast(Committed(made.number))
        if not made.diverged:
            self._services.status.change(checkpoint=made.number)
        self.prune()

    def _pruned(self, _: Sequence[int]) -> None:
        self._pruning -= 1

    def _prune_failed(self, error: RankdeckError) -> None:
        self._pruning -= 1
        log.warning("old checkpoints could not be removed: %s", error.cause)

    def _ledger_written(self, _: None) -> None:
        self._writing_ledger = False

    def _ledger_failed(self, error: RankdeckError) -> None:
        self._writing_ledger = False
        self._keeper.failed()
        log.warning("the ledger file could not be written: %s", error.cause)

    def _start(
        self,
        work: Callable[[], T],
        then: Callable[[T], None] = lambda _: None,
        failed: Callable[[RankdeckError], None] = lambda error: log.warning("%s", error),
    ) -> None:
        async def run() -> None:
            try:
                result = await self._services.on_disk(work)
            except RankdeckError as error:
                failed(error)
            except Exception as error:  # a defect must not leave ranks waiting for an answer
                log.exception("a commit went wrong in the host itself")
                failed(RankdeckError(f"The host could not do it ({type(error).__name__}: {error}).", "See host.log."))
            else:
                then(result)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(logging_failure("a commit went wrong in the host itself"))
