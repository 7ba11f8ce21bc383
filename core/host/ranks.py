"""The ranks of one attempt, each with its process, its connection and its last reports."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from core.host.failures import RankFailure, last_lines
from core.host.pace import Pace
from core.host.rank_processes import LaunchedRank, RankProcess
from core.launch.plan import RankCommand
from core.launch.resolved import ResolvedRun
from core.machine.devices.names import short_label
from core.metrics.last_value import last_value
from core.protocol.codec import encode
from core.protocol.messages import Bye, Message, RankDone, RankFailed
from core.protocol.server import Connection

log = logging.getLogger(__name__)

# Phases of a rank that is a program of its own.
_OWN_PROGRAM: Final = ("running", "computing")
# A rank whose connection is closed has so long to end by itself.
SILENT_LIMIT_S: Final = 5.0
# On another machine nothing but the connection shows that a rank lives. Less than `settle_limit_s`, so that its loss
# comes before the failures that follow from it; its own report or exit code comes in 0.25 s.
_LOST_LIMIT_S: Final = 1.0


@dataclass(slots=True, eq=False)
class Rank:
    """One rank as the host knows it; `first_step` is the first one that it reported in this attempt."""

    command: RankCommand
    child: RankProcess | None = None
    connection: Connection | None = None
    phase: str = "starting"
    first_step: int | None = None
    step: int = 0
    epoch: int = 0
    loss: float | None = None
    tokens_per_s: float | None = None
    done: RankDone | None = None
    bye: Bye | None = None
    lost_at: float | None = None
    exited_at: float | None = None
    pace: Pace = field(default_factory=Pace)
    is_remote: bool = False
    machine: str = ""

    @property
    def number(self) -> int:
        return self.command.rank

    @property
    def device(self) -> str:
        """The name of its device: "GPU 0", or "GPU 0 on node2", since each machine has a GPU 0."""
        label = short_label(self.command.device)
        return f"{label} on {self.machine}" if self.machine else label

    @property
    def started(self) -> bool:
        return self.first_step is not None or self.done is not None or self.phase in _OWN_PROGRAM

    @property
    def trains(self) -> bool:
        return self.first_step is not None and self.done is None and self.connection is not None

    @property
    def begins(self) -> bool:
        is_over = self.done is not None or self.connection is None
        return self.phase in _OWN_PROGRAM and self.first_step is None and not is_over

    @property
    def takes_its_time(self) -> bool:
        return self.phase in ("evaluating", "saving", "computing")

    @property
    def pid(self) -> int | None:
        """The process that trains, or that started the program which does; a launcher may have another pid.

        None also on another machine: here that pid is free, or another process's.
        """
        if self.is_remote:
            return None
        hello = None if self.connection is None else self.connection.hello
        if hello is not None and hello.pid:
            return hello.pid
        return None if self.child is None else self.child.pid

    def saves(self) -> None:
        if self.phase == "training":
            self.phase = "saving"

    def has_saved(self) -> None:
        if self.phase == "saving":
            self.phase = "training"

    def send(self, message: Message) -> None:
        if self.connection is not None:
            self.connection.send(message)

    def note_step(self, value: Mapping[str, Any]) -> bool:
        first = False
        step, loss, tokens = value.get("step"), value.get("loss"), value.get("tokens_per_s")
        if isinstance(step, int):
            self.step = step
            if self.first_step is None:
                self.first_step, first = step, True
            if self.phase not in _OWN_PROGRAM:
                self.phase = "training"
        epoch = value.get("epoch")
        if isinstance(epoch, int | float) and 0 <= epoch < 1e9:  # a script's may be 0.69, or anything
            self.epoch = int(epoch)
        if isinstance(loss, int | float) and math.isfinite(loss):  # some lines of a script have none
            self.loss = float(loss)
        self.tokens_per_s = float(tokens) if isinstance(tokens, int | float) else None
        return first


class Ranks:
    def __init__(self, run: ResolvedRun, commands: Sequence[RankCommand]) -> None:
        self.run = run
        self.all = [Rank(command) for command in commands]
        self.failures: dict[int, RankFailure] = {}
        self.are_copies = False
        self._has_progress = False

    def __iter__(self) -> Iterator[Rank]:
        return iter(self.all)

    def __getitem__(self, rank: int) -> Rank:
        return self.all[rank]

    @property
    def synchronised(self) -> bool:
        return self.run.replica_groups == 1

    @property
    def connected(self) -> bool:
        """Whether ranks wait for each other, in each step or now and then; copies of a script do not."""
        return bool(self.run.backend) or (self.synchronised and len(self.all) > 1 and not self.are_copies)

    @property
    def started(self) -> bool:
        """Whether the attempt trains: in synchronised modes one rank's first step proves that all ranks are there."""
        return any(r.started for r in self) if self.synchronised else all(r.started for r in self)

    @property
    def all_exited(self) -> bool:
        return all(rank.exited_at is not None for rank in self if rank.child is not None)

    @property
    def heard_out(self) -> bool:
        return self.all_exited and all(rank.connection is None for rank in self)

    def note_steps(self, rank: Rank, lines: Sequence[Mapping[str, Any]]) -> bool:
        """Take the newest step among a rank's lines; return whether it is the rank's first one."""
        newest = next((line for line in reversed(lines) if line["event"] == "step"), None)
        self._has_progress = self._has_progress or newest is not None
        return newest is not None and rank.note_step(newest)

    def progress(self) -> dict[str, Any]:
        """Furthest step and epoch, mean loss and total throughput, if a step came since the last call."""
        if not self._has_progress:
            return {}
        self._has_progress = False
        ranks = [rank for rank in self if rank.first_step is not None]
        loss = last_value("loss", (rank.loss for rank in ranks))
        tokens_per_s = last_value("tokens_per_s", (rank.tokens_per_s for rank in ranks))
        step, epoch = max(rank.step for rank in ranks), max(rank.epoch for rank in ranks)
        return {"step": step, "epoch": epoch, "loss": loss, "tokens_per_s": tokens_per_s}

    def broadcast(self, message: Message) -> None:
        line = encode(message)
        for rank in self:
            if rank.connection is not None:
                rank.connection.send_line(line)

    def poll(self, now: float, *, finishing: bool) -> None:
        for rank in self:
            if rank.child is None or rank.exited_at is not None:
                continue
            code = rank.child.poll()
            if code is not None:
                self._exited(rank, code, now, finishing)
            elif rank.lost_at is None or rank.bye is not None:
                continue
            elif isinstance(rank.child, LaunchedRank) and rank.is_remote and now - rank.lost_at > _LOST_LIMIT_S:
                failure = self.failure(rank, rank.lost_at)
                failure.finding = failure.finding or "was lost, because its machine or the network to it is gone"
                rank.child.take_for_dead()
            elif now - rank.lost_at > SILENT_LIMIT_S:
                failure = self.failure(rank, rank.lost_at)
                failure.finding = failure.finding or "closed its connection to the run's host and did not end"

    def note_failure(self, rank: Rank, message: RankFailed, now: float) -> None:
        log.error("rank %d: %s %s\n%s", rank.number, message.title, message.cause, message.traceback)
        failure = self.failure(rank, now)
        failure.report, failure.step = message, rank.step if rank.first_step is not None else 0

    def failure(self, rank: Rank, now: float) -> RankFailure:
        if rank.number not in self.failures:
            log.error("rank %d failed at step %d (%s)", rank.number, rank.step, rank.phase)
            step = rank.step if rank.first_step is not None else 0
            self.failures[rank.number] = RankFailure(
                rank.number, now, rank.device, step, rank.phase, log=rank.command.log
            )
        return self.failures[rank.number]

    def _exited(self, rank: Rank, code: int, now: float, finishing: bool) -> None:
        rank.exited_at = now
        log.info("rank %d has ended with code %d", rank.number, code)
        if finishing or (rank.bye is not None and code == 0 and rank.done is not None):
            return
        # Its socket closed when it died. The exit code is seen up to 0.5 s later, perhaps after a secondary failure of
        # another rank: the socket's time keeps this one first.
        failure = self.failure(rank, now if rank.lost_at is None else min(rank.lost_at, now))
        failure.returncode = code
        failure.tail = last_lines(rank.command.log)
        if code == 0 and not failure.finding:
            failure.finding = "exited without reporting an error"
