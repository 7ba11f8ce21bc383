"""One start of a run's ranks, from spawning them to the last one's end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from core.errors import RankdeckError, UsageError
from core.host.attempt_context import AttemptContext, AttemptEvents
from core.host.commits.gathering import Next
from core.host.commits.rank_barrier import RankBarrier
from core.host.commits.runner import CommitRunner
from core.host.failures import SETTLE_S, describe, root_cause
from core.host.hang_watch import HangWatch
from core.host.loss_watch import LossWatch
from core.host.outcome import Outcome, diverged, stopped_short
from core.host.own_copies import OwnCopies
from core.host.ranks import Rank, Ranks
from core.host.stop_ladder import KILL_WAIT_S, Rung
from core.host.survivor_checkpoint import SurvivorCheckpoint
from core.host.work_plan import rank_starts
from core.processes import ProcessTree
from core.protocol.messages import (
    Bye,
    Claim,
    CommitBegin,
    CommitFailed,
    CommitPlease,
    CommitStaged,
    DataReady,
    Finish,
    GoalProgress,
    MergeDone,
    MergeReady,
    Message,
    Phase,
    RankDone,
    RankFailed,
    Stop,
)
from core.protocol.server import Connection

log = logging.getLogger(__name__)

POLL_S: Final = 0.025
CALM_POLL_S: Final = 0.5
"""While all train: each look takes a core from a rank. What ranks and people say is looked at at once all the same."""
FINISH_LIMIT_S: Final = 30.0
"""Ranks that were told to end have so long; their work is committed already."""
DRAIN_LIMIT_S: Final = 1.0
"""After the ranks are gone their last lines may still be on the way."""


class Attempt:
    """Supervises the ranks of one attempt; `run` from beginning to end, everything else is called by the host.

    Args:
        context: See `AttemptContext`.
        events: Told what happens.
    """

    def __init__(self, context: AttemptContext, events: AttemptEvents) -> None:
        self._context = context
        self._events = events
        self._ranks = Ranks(context.plan)
        self._commits = CommitRunner(
            context.plan,
            context.generations,
            context.keeper,
            context.disk,
            keep=context.keep_generations,
            send=lambda rank, message: self._ranks[rank].send(message),
            emit=events.emit,
            settle=events.settle_metrics,
            on_committed=events.committed,
        )
        self._barrier = RankBarrier(self._ranks, self._commits)
        self._hang_watch = HangWatch(self._ranks, events)
        self._own_copies = OwnCopies(self._ranks, events)
        self._losses = LossWatch(events) if context.plan.self_contained else None
        self._tree = ProcessTree(context.mark)
        self._outcome: Outcome | None = None
        self._data: DataReady | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._began = False
        self._news = asyncio.Event()
        self._start_by = float("inf")
        self._finish_by: float | None = None
        self._survivors: SurvivorCheckpoint | None = None
        self._handlers: dict[type[Message], Callable[[Rank, Any], None]] = {
            Phase: self._on_phase,
            DataReady: self._on_data_ready,
            Claim: self._on_claim,
            CommitBegin: lambda r, m: self._commits.coordinator.begin(
                r.number, m.step, m.reason, m.round, m.join, m.diverged
            ),
            CommitStaged: lambda r, m: self._commits.coordinator.staged(r.number, m),
            CommitFailed: lambda r, m: self._commits.coordinator.failed(r.number, m.generation, m.cause),
            MergeReady: self._on_merge_ready,
            MergeDone: self._barrier.merge_done,
            RankDone: self._on_rank_done,
            GoalProgress: lambda _, m: self._events.goal_moved(m.total_steps, m.text),
            RankFailed: lambda r, m: self._ranks.note_failure(r, m, time.monotonic()),
            Bye: self._on_bye,
        }

    async def run(self) -> Outcome:
        """Starts the ranks and stays until the last one is gone, whatever happens."""
        try:
            await self._spawn()
            while self._outcome is None:
                self._tick(time.monotonic())
                await self._rest()
        except RankdeckError as error:
            self._outcome = Outcome("not_started", error.as_dict(), usage=isinstance(error, UsageError))
        finally:
            self._commits.quiet = True
            unkillable = await self._end()
        return replace(self._outcome, unkillable=tuple(unkillable))

    async def _rest(self) -> None:
        """Until it is time to look again: soon while something is going on, else at the latest after a while."""
        if not self._is_calm:
            await asyncio.sleep(POLL_S)
            return
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CALM_POLL_S):
                await self._news.wait()

    # what the host passes on

    def connected(self, connection: Connection, number: int) -> None:
        """A rank's connection."""
        rank = self._ranks[number]
        rank.connection = connection
        self._events.phase_changed(f"rank {number} connected")
        if self._data is not None:
            rank.send(self._data)
        if self._context.ladder.is_asked:
            rank.send(Stop())

    def message_received(self, number: int, message: Message) -> None:
        """What a rank says."""
        handler = self._handlers.get(type(message))
        if handler is None:
            log.warning("rank %d sent a %s, which is not for a rank to send", number, type(message).__name__)
            return
        self._ranks[number].heard(time.monotonic())
        self._news.set()
        handler(self._ranks[number], message)

    def lines_received(self, number: int, parsed: list[dict[str, Any]]) -> None:
        """A rank's metrics, written already."""
        rank = self._ranks[number]
        rank.heard(time.monotonic())
        if self._losses is not None:
            self._losses.look(number, parsed)
        for value in reversed(parsed):
            if value["event"] == "step":
                first = rank.first_step is None
                rank.note_step(value)
                if first:
                    self._on_first_step(rank)
                break
        else:
            return
        steps = [r for r in self._ranks if r.first_step is not None]
        losses = [r.loss for r in steps if r.loss is not None]
        rates = [r.tokens_per_s for r in steps if r.tokens_per_s is not None]
        self._events.stepped(
            max(r.step for r in steps),
            max(r.epoch for r in steps),
            sum(losses) / len(losses) if losses else None,
            sum(rates) if rates else None,
        )

    def closed(self, number: int, connection: Connection) -> None:
        """A rank's connection is gone."""
        rank = self._ranks[number]
        if rank.connection is connection:
            rank.connection = None
            rank.lost_at = time.monotonic()
            self._news.set()
            self._commits.coordinator.rank_lost(number)

    def stop_asked(self) -> None:
        """The ladder's first rung: ranks commit at their next boundary."""
        self._news.set()
        self._ranks.broadcast(Stop())

    def commit_asked(self) -> None:
        """Somebody wants a generation now."""
        if self._began:
            self._ranks.broadcast(CommitPlease("asked for"))

    def give_up(self, error: dict[str, str]) -> None:
        """Ends the attempt: it cannot save anything any more."""
        self._outcome = self._outcome or Outcome("failed", error)
        self._news.set()

    @property
    def has_begun(self) -> bool:
        """A first step was made: there may be something to commit."""
        return self._began

    # starting

    async def _spawn(self) -> None:
        loop = asyncio.get_running_loop()
        self._events.phase_changed("spawning")
        for rank in self._ranks:
            if self._context.ladder.is_asked:
                return
            command = rank.command
            env = command.environment(os.environ)
            rank.child = await loop.run_in_executor(None, self._tree.spawn, command.argv, env, command.cwd, command.log)
            log.info("rank %d is process %d on %s", rank.number, rank.child.pid, command.device.uuid)
        self._start_by = time.monotonic() + self._context.start_timeout_s

    @property
    def processes(self) -> dict[str, int]:
        """Device uuid → pid of the rank on it."""
        return {rank.command.device.uuid: rank.child.pid for rank in self._ranks if rank.child is not None}

    def _on_phase(self, rank: Rank, message: Phase) -> None:
        rank.phase = message.name
        if message.name == "preparing data":  # who says how far it is has not stopped: data may take an hour
            self._start_by = time.monotonic() + self._context.start_timeout_s
        if message.name == "ready":
            self._events.emit("rank_ready", of=rank.number, device=rank.command.device.uuid)
        if not self._began:
            detail = f" ({message.detail})" if message.detail else ""
            self._events.phase_changed(f"rank {rank.number}: {message.name}{detail}")
            self._begin_if_started()

    def _on_data_ready(self, rank: Rank, message: DataReady) -> None:
        if rank.number != 0 or self._preparing is not None:
            log.warning("rank %d says that the data is ready, again or unasked", rank.number)
            return
        self._start_by = time.monotonic() + self._context.start_timeout_s
        self._preparing = asyncio.get_running_loop().create_task(self._prepare(message))

    async def _prepare(self, data: DataReady) -> None:
        plan, context = self._context.plan, self._context
        try:
            await asyncio.get_running_loop().run_in_executor(
                context.disk, context.keeper.prepare, data, context.generation, plan.world_size, plan.lanes
            )
        except RankdeckError as error:
            log.error("the ledger refuses: %s", error.cause)
            usage = isinstance(error, UsageError)
            self._outcome = self._outcome or Outcome("failed", error.as_dict(), usage=usage)
            return
        assert context.keeper.ledger is not None
        starts = rank_starts(context.config, plan, context.keeper.ledger, context.generation, context.carry)
        self._data = replace(data, starts=starts)
        self._events.data_ready()
        self._ranks.broadcast(self._data)

    def _on_first_step(self, rank: Rank) -> None:
        log.info("rank %d has made step %s", rank.number, rank.first_step)
        self._begin_if_started()

    def _begin_if_started(self) -> None:
        if not self._began and self._ranks.started:
            self._began = True
            self._events.training_began()

    # working

    def _on_claim(self, rank: Rank, message: Claim) -> None:
        try:
            rank.send(self._context.keeper.claim(rank.number, message))
        except RankdeckError as error:
            self._ranks.failure(rank, time.monotonic()).finding = f"made a claim that cannot be ({error.cause})"

    def _on_merge_ready(self, rank: Rank, message: MergeReady) -> None:
        rank.ready = message

    def _on_rank_done(self, rank: Rank, message: RankDone) -> None:
        rank.done, rank.ready = message, None
        if rank.first_step is None:
            rank.step = message.step
        self._begin_if_started()

    def _on_bye(self, rank: Rank, message: Bye) -> None:
        rank.bye = message
        if message.dropped:
            log.warning("rank %d has thrown away %d metrics lines", rank.number, message.dropped)

    # watching

    @property
    def _is_calm(self) -> bool:
        """All train, none waits for the host or is gone, nobody asked for a stop and nothing has gone wrong."""
        if not self._began or self._ranks.failures or self._finish_by is not None or self._commits.coordinator.busy:
            return False
        busy = any(r.done is not None or r.ready is not None or r.connection is None for r in self._ranks)
        return not busy and self._context.ladder.rung(time.monotonic()) is Rung.NONE

    def _tick(self, now: float) -> None:
        if self._preparing is not None and self._preparing.done():
            self._preparing.result()  # a defect in it must not pass for a slow start
        self._ranks.poll(now, finishing=self._finish_by is not None)
        self._commits.tick(now)
        rung = self._context.ladder.rung(now)
        if self._finish_by is not None:
            if self._ranks.all_exited or now > self._finish_by or rung is Rung.END:
                self._outcome = self._outcome or self._completed()
        elif rung is Rung.END or (rung is Rung.ASKED and not self._began):
            self._outcome = self._outcome or self._stopped_short()
        elif self._ranks.failures:
            if self._survivors is None:
                self._survivors = self._begin_survivor_checkpoint(now)
            first = min(failure.at for failure in self._ranks.failures.values())
            settled = self._ranks.heard_out or now - first > SETTLE_S
            if settled and self._survivors.is_over(now, self._commits.coordinator.busy):
                self._outcome = self._outcome or self._failed()
        elif not self._began and now > self._start_by:
            self._outcome = self._outcome or self._start_overdue(now)
        else:
            self._own_copies.look(now)
            self._hang_watch.look(now)  # before the next line, whose phase is to stay
            self._gather(now)

    def _gather(self, now: float) -> None:
        action, phase = self._barrier.step(now)
        if phase or action is Next.RELEASE:
            self._events.phase_changed(phase)
        if action is Next.FINISH:
            self._events.phase_changed("ending")
            self._finish_by = now + FINISH_LIMIT_S
            self._commits.quiet = True  # what a rank still begins now is of no use to anybody
            self._ranks.broadcast(Finish())

    # ending

    def _completed(self) -> Outcome:
        finished = all(rank.done is not None and rank.done.finished for rank in self._ranks)
        newest, good = self._commits.newest, self._commits.newest_good or self._context.generation
        error = None if newest is None or not newest.diverged else diverged(newest, good)
        model = self._barrier.model(self._context.generation)
        return Outcome("finished" if finished else "stopped", error, model=model)

    def _stopped_short(self) -> Outcome:
        """A stop whose ranks are ended without a commit of where they stood."""
        kept = self._commits.newest or self._context.generation
        model = self._barrier.model(self._context.generation)
        step = max(rank.step for rank in self._ranks)
        if self._context.plan.self_contained and self._context.keeper.ledger is None:
            return Outcome("stopped")  # nothing of it is ours to commit
        if not self._began or (kept is not None and kept.step >= step and not self._commits.coordinator.busy):
            return Outcome("stopped", model=model)
        error = stopped_short(step, kept, self._context.ladder.is_hurried, self._commits.trouble)
        return Outcome("stopped", error, model=model)

    def _begin_survivor_checkpoint(self, now: float) -> SurvivorCheckpoint:
        """Ranks that train alone commit once more when another one has failed; those that meet now and then cannot."""
        failed = set(self._ranks.failures)
        survivors = [rank for rank in self._ranks if rank.number not in failed and rank.exited_at is None]
        meet = bool(self._context.plan.backend)  # the lost rank's newest part may be of another round than theirs
        if self._ranks.synchronised or meet or not self._began or not all(self._commits.carry(rank) for rank in failed):
            return SurvivorCheckpoint([], now)
        self._events.phase_changed("committing what the other ranks have learned")
        for rank in survivors:
            rank.send(Stop("another rank failed"))
        return SurvivorCheckpoint(survivors, now + self._context.survivor_timeout_s)

    def _start_overdue(self, now: float) -> Outcome:
        late = next(rank for rank in self._ranks if not rank.started)
        failure = self._ranks.failure(late, now)
        failure.finding = f"made no first step within {self._context.start_timeout_s:g} s"
        return self._failed()

    def _failed(self) -> Outcome:
        failures = list(self._ranks.failures.values())
        root = root_cause(failures)
        kept = self._commits.newest_good or self._context.generation
        resume = f"Resume the run: it continues from generation {kept.number} (step {kept.step})." if kept else ""
        error = describe(root, failures, resume)
        for failure in failures:
            role = "; this is the root cause" if failure is root else " as a secondary failure"
            log.error("rank %d failed%s", failure.rank, role)
        return Outcome("failed" if self._began else "not_started", error, root, root.usage)

    async def _end(self) -> list[int]:
        """Ends what is left of the ranks within bounds, and hears their last lines."""
        loop = asyncio.get_running_loop()
        self._commits.coordinator.abandon("The attempt has ended.")
        if self._preparing is not None:
            await asyncio.wait([self._preparing], timeout=DRAIN_LIMIT_S)
        await self._commits.settle(KILL_WAIT_S)
        now = time.monotonic()
        unkillable = await loop.run_in_executor(None, lambda: self._tree.stop(lambda: None, now, KILL_WAIT_S))
        await loop.run_in_executor(None, self._tree.close, 0.0 if unkillable else KILL_WAIT_S)
        deadline = loop.time() + DRAIN_LIMIT_S
        while any(rank.connection is not None for rank in self._ranks) and loop.time() < deadline:
            await asyncio.sleep(POLL_S)
        return unkillable
