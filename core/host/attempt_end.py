"""Attempt end: moves an attempt from phase to phase, decides its outcome, and ends its processes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from core.host.attempt_launch import AttemptLaunch
from core.host.commits.rank_barrier import RankBarrier
from core.host.commits.runner import CommitRunner
from core.host.failures import describe, root_cause, settle_limit_s
from core.host.outcome import Outcome, diverged, stopped_short
from core.host.rank_processes import RankProcesses
from core.host.ranks import Rank, Ranks
from core.host.services import HostServices
from core.host.states import AttemptPhase
from core.host.stop_ladder import KILL_WAIT_S, Rung, StopLadder
from core.protocol.messages import Finish, Stop

log = logging.getLogger(__name__)

# For ranks that were told to exit; their work is committed already.
FINISH_LIMIT_S: Final = 30.0
# After the ranks' processes are gone their last lines may still be on the way.
DRAIN_LIMIT_S: Final = 1.0
DRAIN_POLL_S: Final = 0.025


class AttemptEnd:
    """Watches for the end of one attempt; `tick` makes each transition but the first, which a rank's message makes.

    Attributes:
        has_begun: A first step was made. True in FAILING as well when that step's message came late: then the
            attempt failed in training, not at the start.
        outcome: None until the phase is ENDED.
    """

    def __init__(
        self,
        services: HostServices,
        launch: AttemptLaunch,
        ladder: StopLadder,
        ranks: Ranks,
        commits: CommitRunner,
        barrier: RankBarrier,
    ) -> None:
        self.phase = AttemptPhase.STARTING
        self.has_begun = False
        self._start_by = float("inf")
        self.outcome: Outcome | None = None
        self._status = services.status
        self._launch = launch
        self._resumed = launch.context.checkpoint
        self._ladder = ladder
        self._ranks = ranks
        self._commits = commits
        self._barrier = barrier
        self._finish_by = float("inf")
        self._survivors: Sequence[Rank] | None = None
        self._survivors_by = float("inf")

    def await_start(self, times: int = 1) -> None:
        self._start_by = time.monotonic() + times * self._launch.run.config.start_timeout_s

    def begin_training(self) -> None:
        self.has_begun = True
        if self.phase is AttemptPhase.STARTING:
            self.phase = AttemptPhase.TRAINING

    def finish(self, now: float) -> None:
        self._status.change_phase("ending")
        self.phase, self._finish_by = AttemptPhase.FINISHING, now + FINISH_LIMIT_S
        # A checkpoint that a rank still begins would never be used.
        self._commits.quiet = True
        self._ranks.broadcast(Finish())

    def end(self, outcome: Outcome) -> None:
        self.phase, self.outcome = AttemptPhase.ENDED, self.outcome or outcome

    def tick(self, now: float) -> None:
        """Make the transition that is due: a stop goes before a failure, a failure before a delay."""
        rung = self._ladder.rung(now)
        if self.phase is AttemptPhase.FINISHING:
            if self._ranks.all_exited or now > self._finish_by or rung is Rung.END:
                self.end(self._completed())
        elif rung is Rung.END or (rung is Rung.ASKED and not self.has_begun):
            self.end(self._stopped_short())
        elif self._ranks.failures:
            self._settle_failure(now)
        elif self.phase is AttemptPhase.STARTING and now > self._start_by:
            late = next(rank for rank in self._ranks if not rank.started)
            limit_s = self._launch.run.config.start_timeout_s
            self._ranks.failure(late, now).finding = f"made no first step within {limit_s:g} s"
            self.end(self._failed())

    async def end_processes(self, processes: RankProcesses) -> list[int]:
        """End the remaining ranks within a time limit and read their last lines; return the pids that survive."""
        loop = asyncio.get_running_loop()
        await self._commits.settle(KILL_WAIT_S)
        unkillable = await loop.run_in_executor(None, processes.stop, KILL_WAIT_S)
        await loop.run_in_executor(None, processes.close, 0.0 if unkillable else KILL_WAIT_S)
        deadline = loop.time() + DRAIN_LIMIT_S
        while any(rank.connection is not None for rank in self._ranks) and loop.time() < deadline:
            await asyncio.sleep(DRAIN_POLL_S)
        await self._commits.remove_unfinished(KILL_WAIT_S)
        return unkillable

    # failing

    def _settle_failure(self, now: float) -> None:
        if self._survivors is None:
            self.phase = AttemptPhase.FAILING
            self._survivors = self._ask_survivors(now)
        failures = self._ranks.failures.values()
        first = min(failure.at for failure in failures)
        settled = self._ranks.heard_out or now - first > settle_limit_s(failures)
        waiting = any(rank.done is None and rank.exited_at is None for rank in self._survivors)
        saving = waiting or (bool(self._survivors) and self._commits.coordinator.busy)
        if settled and (now >= self._survivors_by or not saving):
            self.end(self._failed())

    def _ask_survivors(self, now: float) -> Sequence[Rank]:
        """Ask independent ranks to commit once more, and stop; ranks that synchronise now and then cannot."""
        failed = set(self._ranks.failures)
        survivors = [rank for rank in self._ranks if rank.number not in failed and rank.exited_at is None]
        # Between rounds of local SGD the lost rank's newest part may be of an older round than theirs.
        local_sgd = bool(self._launch.run.backend)
        if self._ranks.synchronised or local_sgd or not self.has_begun:
            return ()
        if not all(self._commits.carry(rank) for rank in failed):
            return ()
        self._status.change_phase("saving what the other devices have learned")
        for rank in survivors:
            rank.send(Stop("another rank failed"))
        self._survivors_by = now + self._launch.run.config.stop_timeout_s
        return survivors

    # outcomes

    def _completed(self) -> Outcome:
        finished = all(rank.done is not None and rank.done.finished for rank in self._ranks)
        newest, good = self._commits.newest, self._commits.newest_good or self._resumed
        devices = [rank.device for rank in self._ranks]
        error = None if newest is None or not newest.diverged else diverged(newest, good, devices)
        model = self._barrier.model(self._resumed)
        return Outcome("finished" if finished else "stopped", error, model=model)

    def _stopped_short(self) -> Outcome:
        """The outcome of a stop whose ranks are ended without a commit of their last steps."""
        kept = self._commits.newest or self._resumed
        model = self._barrier.model(self._resumed)
        step = max(rank.step for rank in self._ranks)
        if self._launch.run.recipe.self_contained and self._launch.context.keeper.ledger is None:
            # The script saves its own checkpoints, so there is nothing to commit.
            return Outcome("stopped")
        if not self.has_begun or (kept is not None and kept.step >= step and not self._commits.coordinator.busy):
            return Outcome("stopped", model=model)
        error = stopped_short(step, kept, self._ladder.is_hurried, self._commits.trouble)
        return Outcome("stopped", error, model=model)

    def _failed(self) -> Outcome:
        failures = list(self._ranks.failures.values())
        root = root_cause(failures)
        kept = self._commits.newest_good or self._resumed
        resume = f"Resume the run: it continues from checkpoint {kept.number} (step {kept.step})." if kept else ""
        error = describe(root, failures, resume)
        for failure in failures:
            role = "; this is the root cause" if failure is root else " as a secondary failure"
            log.error("rank %d failed%s", failure.rank, role)
        return Outcome("failed" if self.has_begun else "not_started", error, root, root.usage)
