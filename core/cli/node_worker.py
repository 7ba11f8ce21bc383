"""Node workers: processes of `rankdeck train` that torchrun's agents on several machines have started.

The machine that `--rdzv-endpoint` names has the meeting's folder, the run's host and, whatever numbers torchrun has
given, the first ranks; workers of other machines take part through a link. An exit code of 1 asks the agents to start
all workers again, and those continue the run from its last checkpoint. So anything that ends the run for good exits
with 0, and leaves its real code in a file.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from core.cli.follow import StopLadder
from core.cli.interrupts import counted_interrupts
from core.cli.launched import MEET_LIMIT_S, LaunchedRun
from core.cli.node_return import end_between_hosts
from core.cli.rank_starter import RankStarter
from core.errors import RankdeckError
from core.launch.meeting import POLL_S, Meeting, error_in, folder_of
from core.launch.nodes.job import NodeJob
from core.launch.nodes.key import read_key
from core.launch.nodes.meeting_link import MeetingServer, RemoteMeeting
from core.launch.nodes.seats import FILE as SEATS_FILE
from core.launch.nodes.seats import NodeSeats, Seat, text_of
from core.machine.devices.cpu import cpu_slots
from core.machine.devices.device import Device
from core.processes.identity import ProcessId, identify
from core.records import read_record
from core.run_folder.store import RunStore

# Beside the file with the exit code: this machine is to leave the run, and is not about to start again.
LEAVE: Final = "leave"
_RESTART: Final = 1
_STOP_LIMIT_S: Final = 25.0  # an agent gives its workers 30 s
_STOP_POLL_S: Final = 0.25


@dataclass(slots=True)
class _Meeting:
    """What a worker has learned of the meeting.

    Attributes:
        link: Lets workers of other machines take part.
        is_incomplete: A worker did not come, or is gone again.
    """

    link: MeetingServer | None = None
    is_incomplete: bool = False


@dataclass(frozen=True, slots=True)
class NodeRun(LaunchedRun):
    """What the workers of all machines do together.

    Args:
        job: This machine's part.
    """

    job: NodeJob
    led: _Meeting = field(default_factory=_Meeting)

    def run(self) -> int:
        """To the end of the run, or until workers are to be started again; returns what torchrun is to see."""
        result = Path(self.job.result)
        result.unlink(missing_ok=True)
        parent = identify(os.getppid()) or ProcessId(os.getppid(), 0.0)
        try:
            code = self._here(parent) if self.job.is_host else self._elsewhere(parent)
        except RankdeckError as error:
            self.terminal.error(error)
            code = None
        if code is None:
            return _RESTART
        result.write_text(str(code), encoding="utf-8")
        return 0

    # on the machine with the run's host

    def _here(self, parent: ProcessId) -> int | None:
        base, node_base = self.place.rank - self.place.local_rank, self.place.node_rank
        here = dataclasses.replace(self, place=self.place.replace(rank=self.place.local_rank))
        named = self.place.replace(job=self.job.session, restart_count=0)
        meeting = Meeting(folder_of(named, parent))
        if meeting.remembered_run() is None and self.place.num_nodes < self.job.count.least:
            self._await_agents()  # what is left may continue a run; a run is begun by as many as were asked for
            return None
        starter = RankStarter(meeting, here.place, parent)
        if here.place.rank > 0:
            code = here.follow(meeting, starter)
            return None if starter.has_started and starter.again else code
        try:
            about = {"base": base, "node_base": node_base, "command": _as_json(self.job.command)}
            code = here.lead(meeting, starter, keep_run=True, about=about)
        finally:
            if self.led.link is not None:
                self.led.link.close()
        return None if self._is_to_continue(starter) else code

    def _await_agents(self) -> None:
        """Waits for agents that have checked in and are not here yet: theirs starts this process again then."""
        deadline = time.monotonic() + MEET_LIMIT_S
        with counted_interrupts(alike=True) as interrupts:
            while not interrupts.count and time.monotonic() < deadline:
                time.sleep(POLL_S)

    def gather(self, meeting: Meeting, secret: str) -> list[Device]:
        """The devices of all machines; on each, CPU devices are counted from 0, so here they are numbered by rank."""
        self.led.link = MeetingServer(meeting, self.job.address, self.job.meeting_port, read_key())
        self.led.is_incomplete = True
        devices = LaunchedRun.gather(self, meeting, secret)
        arrived = [meeting.read(f"arrived-{rank}.json") for rank in range(self.place.world_size)]
        lost = [rank for rank, value in enumerate(arrived) if value is None]
        if lost:
            raise self.missing(f"rank {lost[0]}")
        self.led.is_incomplete = False
        own = self.seat(0)
        seats = [
            read_record(Seat, value["seat"]) if value and "seat" in value else dataclasses.replace(own, local_rank=rank)
            for rank, value in enumerate(arrived)
        ]
        meeting.write(SEATS_FILE, NodeSeats.of_job(self.job, seats, devices).to_dict())
        self.terminal.say(text_of(seats))
        return [cpu_slots(rank + 1)[rank] if one.kind == "cpu" else one for rank, one in enumerate(devices)]

    @property
    def command(self) -> ProcessId | None:
        return self.job.command

    def open_run(self, meeting: Meeting, devices: Sequence[Device], *, keep_run: bool) -> tuple[RunStore, int]:
        """As `LaunchedRun.open_run`; a run that cannot be continued has failed."""
        try:
            return LaunchedRun.open_run(self, meeting, devices, keep_run=keep_run)
        except RankdeckError as error:
            if (earlier := meeting.remembered_run()) is not None:
                end_between_hosts(RunStore(earlier.run_dir), self.command, error)
            raise

    def on_interrupt(self, store: RunStore, starter: RankStarter) -> Callable[[int], bool]:
        """The run is stopped in order; for good only if this machine was asked to leave."""
        climb = StopLadder(store, self.terminal).climb

        def stop(count: int) -> bool:
            if not self._leaves:
                starter.promise_restart()
            return climb(count)

        return stop

    def forgets_run(self, _code: int, starter: RankStarter) -> bool:
        return not self._is_to_continue(starter)

    def _is_to_continue(self, starter: RankStarter) -> bool:
        return starter.again if starter.has_started else self.led.is_incomplete

    @property
    def _leaves(self) -> bool:
        return Path(self.job.result).with_name(LEAVE).exists()

    # on another machine

    def _elsewhere(self, parent: ProcessId) -> int | None:
        meeting = RemoteMeeting(self.job.host, self.job.meeting_port, read_key())
        meeting.connect(MEET_LIMIT_S)
        try:
            opened = _leader_of(meeting)
            rank = (self.place.rank - int(opened["base"])) % self.place.world_size
            there = dataclasses.replace(self, place=self.place.replace(rank=rank))
            return there._take_part(meeting, RankStarter(meeting, there.place, parent), int(opened["node_base"]))
        finally:
            meeting.close()

    def _take_part(self, meeting: RemoteMeeting, starter: RankStarter, node_base: int) -> int | None:
        node = (self.place.node_rank - node_base) % self.place.num_nodes
        leader = self.arrive(meeting, seat=dataclasses.asdict(self.seat(node)))
        opened = self.opened(meeting, leader)
        if "run_dir" not in opened:
            self._report_once(error_in(opened))
            return int(opened["exit_code"]) if "exit_code" in opened else None
        with counted_interrupts(alike=True) as interrupts:
            starter.start()
            deadline: float | None = None
            while not starter.ended(_STOP_POLL_S):
                # The agents start all workers again, and the host has its ranks save a checkpoint; or this machine
                # leaves, by itself.
                if interrupts.count and deadline is None:
                    deadline = time.monotonic() + (0.0 if self._leaves else _STOP_LIMIT_S)
                if deadline is not None and time.monotonic() > deadline:
                    meeting.close()
        if starter.again:
            return None
        self._report_once(starter.error)
        return starter.code

    def _report_once(self, error: RankdeckError | None) -> None:
        """Says on this machine, too, why the run has failed."""
        if error is not None and self.place.local_rank == 0:
            self.terminal.error(error)

    def seat(self, node: int) -> Seat:
        place = self.place
        return Seat(node, place.local_rank, place.devices_per_node, self.job.nic, self.job.name)


def _as_json(process: ProcessId | None) -> dict[str, Any] | None:
    return None if process is None else {"pid": process.pid, "started": process.started}


def _leader_of(meeting: RemoteMeeting) -> dict[str, Any]:
    deadline = time.monotonic() + MEET_LIMIT_S
    while True:
        opened = meeting.read("leader.json")
        if opened is not None and "base" in opened:
            return opened
        if time.monotonic() > deadline or not meeting.lives(ProcessId(1, 0.0)):
            raise RankdeckError(
                "The machine with the run's host ended the connection.",
                "Look at the output there.",
                title="A process is missing",
            )
        time.sleep(POLL_S)
