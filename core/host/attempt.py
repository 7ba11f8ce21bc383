"""One start of a run's ranks, from spawning them to the last one's end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from core.checkpoints.checkpoint_choice import entry_of
from core.checkpoints.store import Checkpoint
from core.errors import RankdeckError, UsageError
from core.host.attempt_end import DRAIN_LIMIT_S, AttemptEnd
from core.host.attempt_launch import AttemptLaunch
from core.host.commits.rank_barrier import RankBarrier
from core.host.commits.runner import CommitRunner
from core.host.outcome import Outcome
from core.host.ranks import Rank, Ranks
from core.host.services import HostServices
from core.host.states import AttemptPhase
from core.host.stop_ladder import Rung, StopLadder
from core.host.watches.disk import DiskWatch
from core.host.watches.early_stop import StopReason, StopWatch
from core.host.watches.hang_watch import HangResponse, HangWatch
from core.host.watches.log_watch import LogWatch
from core.host.watches.script_watches import LossWatch, OwnCopies
from core.host.watches.spill_watch import SpillWatch
from core.host.watches.straggler import StragglerWatch
from core.host.watches.watch import Watch
from core.launch.run_length import unequal_shares
from core.launch.work_plan import rank_starts, total_steps
from core.processes import folder_mark, new_mark
from core.protocol.messages import (
    COMPILING,
    Bye,
    Claim,
    CommitBegin,
    CommitFailed,
    CommitStaged,
    DataReady,
    GoalProgress,
    MergeDone,
    Message,
    MicroBatchHalved,
    Phase,
    RankDone,
    RankFailed,
    Stacks,
    Stop,
)
from core.protocol.server import Connection
from core.recipes.best_checkpoint import worth_keeping

log = logging.getLogger(__name__)

POLL_S: Final = 0.025
# While all ranks train, each look takes a core from one of them. Messages are handled at once all the same.
CALM_POLL_S: Final = 0.5
_LOOK_SHARE: Final = 9.0
# A look at a thousand ranks takes tens of milliseconds, in which none is heard: looks take a tenth of the time.
_LONGEST_REST_S: Final = 1.0

# Compiling a model may last this many times as long as another part of the start.
_COMPILING: Final = 10


class AttemptOwner(Protocol):
    def stop_for(self, reason: StopReason) -> None:
        """End the run in order."""

    def on_training(self) -> None:
        """The first step was made."""

    def on_halved(self, message: MicroBatchHalved) -> None:
        """Ranks train with smaller micro-batches."""


class Attempt:
    """Supervises the ranks of one attempt: `run` from beginning to end, the other methods are called by the host."""

    def __init__(
        self,
        services: HostServices,
        launch: AttemptLaunch,
        ladder: StopLadder,
        owner: AttemptOwner,
        stop_watch: StopWatch,
        watches: Sequence[Watch],
    ) -> None:
        self._services = services
        self._launch = launch
        self._ladder = ladder
        self._owner = owner
        self._processes = services.rank_processes(new_mark(folder_mark(services.store.dir)))
        self._ranks = ranks = Ranks(launch.run, launch.commands)
        if (seats := services.seats) is not None:
            for rank, seat in zip(ranks, seats.ranks, strict=False):
                rank.is_remote, rank.machine = seat.is_remote, seat.name if seats.nodes > 1 else ""
        config, checkpoint = launch.run.config, launch.context.checkpoint

        def protected(checkpoints: Sequence[Checkpoint]) -> Collection[int]:
            """Checkpoints that are never removed: the best by the run's stop rules and by the recipe's own figure."""
            entries = [entry_of(checkpoint) for checkpoint in checkpoints]
            best = worth_keeping(services.store.columns, launch.run.recipe.heroes, entries)
            return {*stop_watch.pinned(checkpoints), *best}

        self._commits = commits = CommitRunner(
            services, launch.context.keeper, ranks, config.keep_checkpoints, protected
        )
        self._barrier = RankBarrier(ranks, commits)
        self._end = AttemptEnd(services, launch, ladder, ranks, commits, self._barrier)
        size = 0 if checkpoint is None else checkpoint.size_bytes
        response = HangResponse(services, ranks)
        self._hangs = HangWatch(ranks, config.hang_timeout_s, response, lambda: services.stream.is_behind)
        self._watches = (
            stop_watch,
            *watches,
            LogWatch([rank.command.log for rank in ranks]),
            DiskWatch(services, commits, config.disk_reserve, size, owner.stop_for),
            StragglerWatch(services, ranks),
            SpillWatch(services, ranks),
            LossWatch(services, ranks),
            OwnCopies(services, ranks),
            self._hangs,
        )
        self._ready: Sequence[DataReady] = ()  # for each rank, once the data is
        self._preparing: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._handlers: dict[type[Message], Callable[[Rank, Any], None]] = {
            Phase: self._on_phase,
            DataReady: self._on_data_ready,
            Claim: self._on_claim,
            CommitBegin: self._on_commit_begin,
            CommitStaged: self._on_commit_staged,
            CommitFailed: self._on_commit_failed,
            MergeDone: self._barrier.merge_done,
            MicroBatchHalved: lambda _, m: owner.on_halved(m),
            RankDone: self._on_rank_done,
            GoalProgress: lambda _, m: services.status.change(total_steps=m.total_steps, goal=m.text),
            RankFailed: lambda r, m: ranks.note_failure(r, m, time.monotonic()),
            Stacks: response.answered,
            Bye: self._on_bye,
        }

    async def run(self) -> Outcome:
        try:
            for watch in self._watches:
                await watch.begin()
            await self._spawn()
            while self._end.outcome is None:
                began = time.monotonic()
                self._tick(began)
                await self._rest(min(_LONGEST_REST_S, _LOOK_SHARE * (time.monotonic() - began)))
            outcome = self._end.outcome
        except RankdeckError as error:
            outcome = Outcome("not_started", error.as_dict(), usage=isinstance(error, UsageError))
        finally:
            unkillable = await self._end_processes()
        return replace(outcome, unkillable=tuple(unkillable))

    async def _rest(self, least_s: float) -> None:
        """Wait until it is time to look again: soon while anything changes, else after 0.5 s or the next message."""
        if not self._is_calm:
            await asyncio.sleep(max(POLL_S, least_s))
            return
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CALM_POLL_S):
                await self._news.wait()
                await asyncio.sleep(least_s)

    # what the host passes on

    def connected(self, connection: Connection, number: int) -> None:
        rank = self._ranks[number]
        rank.connection, rank.lost_at = connection, None
        self._services.status.change_phase(f"{rank.device} connected")
        if self._ready:
            rank.send(self._ready[number])
        if self._ladder.is_asked:
            rank.send(Stop())

    def message_received(self, number: int, message: Message) -> None:
        handler = self._handlers.get(type(message))
        if handler is None:
            log.warning("rank %d sent a %s, which is not for a rank to send", number, type(message).__name__)
            return
        if not isinstance(message, Stacks):  # an answer proves no progress
            self._hangs.heard(self._ranks[number], time.monotonic())
        self._news.set()
        handler(self._ranks[number], message)

    def lines_received(self, number: int, parsed: list[dict[str, Any]]) -> None:
        rank = self._ranks[number]
        for watch in self._watches:
            watch.take(rank, parsed)
        if self._ranks.note_steps(rank, parsed):
            log.info("rank %d has made step %s", number, rank.first_step)
            self._begin_if_started()

    def sampled(self, rows: list[dict[str, Any]]) -> None:
        for watch in self._watches:
            watch.sampled(rows)

    def closed(self, number: int, connection: Connection) -> None:
        rank = self._ranks[number]
        if rank.connection is connection:
            rank.connection = None
            rank.lost_at = time.monotonic()
            self._news.set()
            self._commits.coordinator.rank_lost(number)

    def stop_asked(self) -> None:
        for watch in self._watches:
            watch.cancel()
        self._news.set()
        self._ranks.broadcast(Stop())

    def give_up(self, error: dict[str, str]) -> None:
        self._end.end(Outcome("failed", error))
        self._news.set()

    # starting

    async def _spawn(self) -> None:
        self._services.status.change_phase("starting processes")
        commands = [rank.command for rank in self._ranks]
        started = await asyncio.to_thread(self._processes.start, commands, lambda: self._ladder.is_asked)
        for rank, child in zip(self._ranks, started, strict=False):
            rank.child = child
            log.info("rank %d is process %d on %s", rank.number, child.pid, rank.command.device.uuid)
        self._end.await_start()

    def _watch_processes(self) -> None:
        pids = {rank.command.device.uuid: rank.pid for rank in self._ranks if rank.pid is not None}
        self._launch.context.monitor.watch(pids)

    def _on_phase(self, rank: Rank, message: Phase) -> None:
        rank.phase = message.name
        # Who says how far it is has not stopped: data may take an hour.
        if message.name == "preparing data":
            self._end.await_start()
        if message.name == COMPILING:  # which says nothing until it is done
            self._end.await_start(_COMPILING)
        if message.name == "ready":
            self._services.stream.emit("rank_ready", of=rank.number, device=rank.command.device.uuid)
        if not self._end.has_begun:
            detail = f" ({message.detail})" if message.detail else ""
            self._services.status.change_phase(f"{rank.device}: {message.name}{detail}")
            self._begin_if_started()

    def _on_data_ready(self, rank: Rank, message: DataReady) -> None:
        if rank.number != 0 or self._preparing is not None:
            log.warning("rank %d says that the data is ready, again or unasked", rank.number)
            return
        self._end.await_start()
        self._preparing = asyncio.get_running_loop().create_task(self._prepare(message))

    async def _prepare(self, data: DataReady) -> None:
        launch, run = self._launch, self._launch.run
        keeper, checkpoint = launch.context.keeper, launch.context.checkpoint
        try:
            await self._services.on_disk(keeper.prepare, data, checkpoint, run.world_size, run.replica_groups)
        except RankdeckError as error:
            log.error("the ledger refuses: %s", error.cause)
            self._end.end(Outcome("failed", error.as_dict(), usage=isinstance(error, UsageError)))
            return
        assert keeper.ledger is not None
        starts = rank_starts(run, keeper.ledger, checkpoint, launch.restore_plan)
        self._ready = [replace(data, start=start) for start in starts]
        unequal = () if data.chunk_size or checkpoint is not None else unequal_shares(data.samples, run)
        if unequal:
            cause, next_step = (*unequal, "")[:2]
            title = "Devices get unequal shares"
            self._services.stream.emit("alert", kind="unequal_shares", title=title, cause=cause, next_step=next_step)
        # A script decides itself how many steps it makes.
        if not run.recipe.self_contained:
            total = total_steps(run, keeper.ledger, dict(enumerate(launch.restore_plan.steps)))
            self._services.status.change(total_steps=total)
            self._watch_processes()
        for rank in self._ranks:
            rank.send(self._ready[rank.number])

    def _begin_if_started(self) -> None:
        if self._ranks.started and not self._end.has_begun:
            self._end.begin_training()
            self._watch_processes()
            self._owner.on_training()

    # working

    def _on_claim(self, rank: Rank, message: Claim) -> None:
        try:
            rank.send(self._launch.context.keeper.claim(rank.number, message))
        except RankdeckError as error:
            self._ranks.failure(rank, time.monotonic()).finding = f"made a claim that cannot be ({error.cause})"

    def _on_commit_begin(self, rank: Rank, message: CommitBegin) -> None:
        rank.saves()
        m = message
        self._commits.coordinator.begin(rank.number, m.step, m.reason, m.round, m.join, m.diverged)

    def _on_commit_staged(self, rank: Rank, message: CommitStaged) -> None:
        rank.has_saved()
        self._commits.coordinator.staged(rank.number, message)

    def _on_commit_failed(self, rank: Rank, message: CommitFailed) -> None:
        rank.has_saved()
        self._commits.coordinator.failed(rank.number, message.checkpoint, message.cause)

    def _on_rank_done(self, rank: Rank, message: RankDone) -> None:
        rank.done = message
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
        """Whether all ranks train, with no failure, no requested stop and no rank that waits for the host."""
        if self._end.phase is not AttemptPhase.TRAINING or self._ranks.failures or self._commits.coordinator.busy:
            return False
        busy = any(r.done is not None or r.connection is None for r in self._ranks)
        return not busy and self._ladder.rung(time.monotonic()) is Rung.NONE

    def _tick(self, now: float) -> None:
        if self._preparing is not None and self._preparing.done():
            # A defect in it must not pass for a slow start.
            self._preparing.result()
        self._report_progress()
        self._ranks.poll(now, finishing=self._end.phase is AttemptPhase.FINISHING)
        self._commits.tick(now)
        self._end.tick(now)
        for watch in self._watches:
            watch.tick(now, self._end.phase)
        if self._end.phase.is_working:
            self._gather(now)

    def _report_progress(self) -> None:
        if progress := self._ranks.progress():
            self._services.status.progress(**progress)

    def _gather(self, now: float) -> None:
        may_end, phase = self._barrier.step(now)
        if phase:
            self._services.status.change_phase(phase)
        if may_end:
            self._end.finish(now)

    async def _end_processes(self) -> list[int]:
        for watch in self._watches:
            watch.cancel()
        self._commits.quiet = True
        self._commits.coordinator.abandon("The attempt has ended.")
        if self._preparing is not None:
            await asyncio.wait([self._preparing], timeout=DRAIN_LIMIT_S)
        unkillable = await self._end.end_processes(self._processes)
        self._report_progress()
        for watch in self._watches:
            await watch.close()
        return unkillable
