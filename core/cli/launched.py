"""Launched processes: `rankdeck train` and `resume` under torchrun, srun or mpirun.

Each process that the launcher started starts one rank. The first of them checks the run, makes its folder and starts
the run's host, as a run in the foreground does, and follows it; the others wait for it. On several machines they meet
in the shared folder of runs.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.cli.follow import Follower, StopLadder, exit_code, report_ending
from core.cli.interrupts import counted_interrupts
from core.cli.rank_starter import RankStarter
from core.cli.terminal import Terminal
from core.client import resume_run, stop_run, wait_for_end
from core.config.distributed import DistributedConfig
from core.config.launcher_variables import TITLES
from core.config.layers import DeviceCount
from core.errors import RankdeckError, UsageError
from core.launch.launched import check_devices, check_several_machines, given_device
from core.launch.meeting import POLL_S, Meeting, error_in, meeting_of
from core.launch.mode import recipe_platform, usable_devices
from core.launch.seats import FILE as SEATS_FILE
from core.launch.seats import NodeSeats, Seat, own_seat
from core.machine.devices.cpu import cpu_slots
from core.machine.devices.device import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.resolve import device_texts
from core.machine.devices.visible import CUDA
from core.machine.platform import this_platform
from core.metrics.metrics_file import whole_bytes
from core.processes.identity import ProcessId, identify, is_alive, own
from core.protocol.rank_context import ENV_MEETING, ENV_RANK
from core.recipes.manifest import Recipe
from core.records import read_record
from core.resume.planner import plan_resume
from core.run_folder.store import RunStore

# For all processes to arrive: a launcher starts them within a moment, and each has to import Rankdeck.
MEET_LIMIT_S: Final = 60.0
# For the first one to check the run; a large dataset takes a while.
_OPEN_LIMIT_S: Final = 300.0
_FAREWELL_S: Final = 5.0
# A network drive shows the end some seconds later.
_FAREWELL_ELSEWHERE_S: Final = 10.0
# For the host of an earlier start, whose ranks the launcher has ended, to end too.
_END_LIMIT_S: Final = 60.0
_FOLLOW_POLL_S: Final = 0.25


def launched_place() -> DistributedConfig | None:
    """Return this process's place if a launcher has started it; None if a person or a rank has.

    Raises:
        ConfigError: The launcher's variables cannot be read.
    """
    if ENV_RANK in os.environ:
        return None
    place = DistributedConfig.from_env(os.environ)
    return place if place.is_launched else None


def check_arguments(place: DistributedConfig, arguments: argparse.Namespace) -> None:
    """Refuse what processes of a launcher cannot do; raises `UsageError`."""
    check_several_machines(place)
    title = TITLES[place.launch_method]
    for name in ("detach", "dry_run"):
        if getattr(arguments, name, False):
            flag = f"--{name.replace('_', '-')}"
            cause = (
                f"{flag} is given, but the processes that {title} started are the run's ranks and stay until its end."
            )
            raise UsageError(cause, f"Leave out {flag}, or start the run without {title}.")


def with_others(devices: Sequence[Device]) -> list[Device]:
    """Return this machine's devices, and those of a run that are GPUs of another one."""
    with DeviceMonitor() as monitor:
        own = monitor.devices()
    known = {device.uuid for device in own}
    return [*own, *(device for device in devices if device.kind == "cuda" and device.uuid not in known)]


def own_device(
    place: DistributedConfig, asked: Sequence[str], count: DeviceCount | None, recipe: Recipe | None
) -> Device:
    """Return the device that the launcher has given this process; raises as `given_device`."""
    platform = this_platform()
    with DeviceMonitor() as monitor:
        usable, _ = usable_devices(monitor.devices(), recipe_platform(recipe, platform) if recipe else platform)
    return given_device(place, asked, count, usable)


@dataclass(frozen=True, slots=True)
class _Arrival:
    """One process as it arrives at the meeting.

    Attributes:
        pid, started: The process.
        secret: The leader's, repeated.
        nonce: Its own, which the leader repeats: an answer without it was written for an earlier start.
        seat: Its machine, in a run on several.
    """

    pid: int
    started: float
    secret: str
    nonce: str
    device: Device
    seat: Seat | None = None


@dataclass(frozen=True, slots=True)
class LaunchedRun:
    """What all processes of a launcher do together.

    Args:
        place: This process's.
        device: The one that the launcher has given it.
        begin: Starts the run on these devices; returns it, and how many bytes of its metrics are not new. For the
            first process.
        as_json: It prints metrics and states as JSON.
        runs_dir: The folder of runs, in which the processes of several machines meet.
    """

    place: DistributedConfig
    device: Device
    begin: Callable[[Sequence[Device]], tuple[RunStore, int]]
    terminal: Terminal
    as_json: bool
    runs_dir: Path

    def run(self) -> int:
        """Take part until the run's end; return the exit code.

        Raises:
            RankdeckError: There is no run.
        """
        parent = identify(os.getppid()) or ProcessId(os.getppid(), 0.0)
        meeting = meeting_of(self.place, parent, self.runs_dir)
        starter = RankStarter(meeting, self.place, parent)
        return self._lead(meeting, starter, parent) if self.place.rank == 0 else self._follow(meeting, starter)

    # the first process

    def _lead(self, meeting: Meeting, starter: RankStarter, parent: ProcessId) -> int:
        earlier = meeting.run_of(parent, is_restart=self.place.restart_count > 0)
        seat = self._seat("")
        about = {"method": self.place.launch_method, "address": "" if seat is None else seat.address}
        secret = meeting.begin(own(), about, earlier, parent)
        code, refused = RankdeckError.exit_code, None
        try:
            meeting.write("arrived-0.json", dataclasses.asdict(self._arrival(secret, seat)))
            arrivals = self._gather(meeting, secret)
            devices = self._devices(meeting, arrivals)
            os.environ[ENV_MEETING] = str(meeting.folder)  # the host's from here on
            if any(device.kind == "cuda" for device in devices):
                # It may show this process its own GPU only; UUIDs name all.
                os.environ.pop(CUDA, None)
            store, offset = self.begin(devices) if earlier is None else self._continue(earlier, devices)
            meeting.remember_run(store.dir, parent)
            meeting.write("open.json", {"run_dir": str(store.dir), "nonces": [one.nonce for one in arrivals]})
            self.terminal.say(f"Run {store.dir.name} in {store.dir}")
            code = self._watch(store, starter, offset)
        except RankdeckError as error:
            code, refused = error.exit_code, error
            self.terminal.error(error)
        finally:
            # The launcher sends SIGTERM as soon as another process has ended; the folder would be left behind.
            with counted_interrupts(alike=True):
                if refused is not None:
                    nonces = [one.nonce for one in self._arrived(meeting, secret)]
                    meeting.write("open.json", {"exit_code": code, "error": refused.as_dict(), "nonces": nonces})
                self._await_others(meeting)
                meeting.remove(forget_run=code == 0 or self.place.restart_count >= self.place.max_restarts)
        return code

    def _arrived(self, meeting: Meeting, secret: str) -> Iterator[_Arrival]:
        for rank in range(self.place.world_size):
            arrived = meeting.read(f"arrived-{rank}.json")
            if arrived is not None and arrived.get("secret") == secret:
                yield read_record(_Arrival, arrived)

    def _gather(self, meeting: Meeting, secret: str) -> list[_Arrival]:
        """Return all processes, by rank, once all are there."""
        deadline = time.monotonic() + MEET_LIMIT_S
        known: dict[int, _Arrival] = {}
        while len(known) < self.place.world_size:
            for rank in set(range(self.place.world_size)) - known.keys():
                arrived = meeting.read(f"arrived-{rank}.json")
                if arrived is None or arrived.get("secret") != secret:
                    continue
                known[rank] = read_record(_Arrival, arrived)
            if time.monotonic() > deadline:
                missing = sorted(set(range(self.place.world_size)) - known.keys())
                ranks = f"{'ranks' if len(missing) > 1 else 'rank'} {', '.join(map(str, missing))}"
                raise self._missing(ranks, meeting)
            time.sleep(POLL_S)
        return [known[rank] for rank in range(self.place.world_size)]

    def _devices(self, meeting: Meeting, arrivals: Sequence[_Arrival]) -> list[Device]:
        """Return the devices by rank; those of several machines are entered in the meeting with their seats."""
        devices, seats = [one.device for one in arrivals], [one.seat for one in arrivals if one.seat is not None]
        check_devices(self.place, devices, [seat.node for seat in seats] or [0] * len(devices))
        if not seats:
            return devices
        placed = NodeSeats.of_ranks(seats, devices)
        meeting.write(SEATS_FILE, dataclasses.asdict(placed))
        self.terminal.say(placed.text)
        # Each machine counts its CPU devices from 0, so here they are numbered by rank.
        return [cpu_slots(rank + 1)[rank] if one.kind == "cpu" else one for rank, one in enumerate(devices)]

    def _continue(self, run_dir: Path, devices: Sequence[Device]) -> tuple[RunStore, int]:
        """Resume the run of the launcher's earlier start; also returns how much of its metrics is not new."""
        store = RunStore.open(run_dir)
        wait_for_end(store, _END_LIMIT_S)
        changes = {"devices": ",".join(device_texts(devices))}
        plan = plan_resume(str(run_dir), run_dir.parent, changes, available=with_others(devices), accept_code=True)
        for line in plan.lines():
            self.terminal.warn(line)
        offset = whole_bytes(store.metrics)
        return resume_run(plan), offset

    def _watch(self, store: RunStore, starter: RankStarter, offset: int) -> int:
        """Show the run until its end; return the exit code."""
        with counted_interrupts(alike=True) as interrupts:
            starter.start()
            follower = Follower(store, self.terminal, self.as_json, offset)
            ending = follower.until_end(interrupts, StopLadder(store, self.terminal).climb)
            report_ending(ending, store, self.terminal)
            # Until the host lets go: Slurm ends what lives when its processes have.
            starter.ended(_END_LIMIT_S)
        return exit_code(ending)

    def _await_others(self, meeting: Meeting) -> None:
        """Leave the folder to the others until they have read how it ended."""
        names = [f"arrived-{rank}.json" for rank in range(1, self.place.world_size)]
        deadline = time.monotonic() + (_FAREWELL_S if self.place.num_nodes == 1 else _FAREWELL_ELSEWHERE_S)
        while time.monotonic() < deadline:
            others = [value for name in names if (value := meeting.read(name)) is not None]
            if not any(_may_live(value) for value in others):
                return
            time.sleep(POLL_S)

    # the others

    def _follow(self, meeting: Meeting, starter: RankStarter) -> int:
        try:
            opened = self._opened(meeting)
            if "run_dir" not in opened:
                self._report(error_in(opened))
                return int(opened.get("exit_code", RankdeckError.exit_code))
            store = RunStore(Path(opened["run_dir"]))
            with counted_interrupts(alike=True) as interrupts:
                starter.start()
                handled = 0
                while not starter.ended(_FOLLOW_POLL_S):
                    if handled < interrupts.count:
                        handled += 1
                        # It has ended, or the first process has asked already; on another machine only that can ask.
                        with contextlib.suppress(RankdeckError):
                            stop_run(store, now=handled > 1)
            self._report(starter.error)
            return starter.code
        finally:
            meeting.leave(self.place.rank)

    def _opened(self, meeting: Meeting) -> dict[str, Any]:
        """Arrive at the meeting; return the first process's word on the run, empty if that process is gone."""
        deadline, arrival = time.monotonic() + MEET_LIMIT_S, None
        while True:
            leader = meeting.leader()
            if leader is not None and (arrival is None or arrival.secret != leader.get("secret")):
                # For the first time, or again: the leader was that of an earlier start.
                arrival = self._arrival(str(leader.get("secret")), self._seat(str(leader.get("address", ""))))
                deadline = time.monotonic() + _OPEN_LIMIT_S
                try:
                    meeting.write(f"arrived-{self.place.rank}.json", dataclasses.asdict(arrival))
                except RankdeckError:  # the folder is just being made again
                    arrival = None
            opened = None if arrival is None else meeting.read("open.json")
            if opened is not None and arrival is not None and arrival.nonce in opened.get("nonces", ()):
                return opened
            # A remote one may be that of an earlier start.
            is_gone = leader is None and not meeting.is_remote
            if arrival is not None and (is_gone or time.monotonic() > deadline):
                return {}
            if time.monotonic() > deadline:
                raise self._missing("rank 0", meeting)
            time.sleep(POLL_S)

    def _report(self, error: RankdeckError | None) -> None:
        """Say once on another machine why the run has failed; here the first process says it."""
        if error is not None and self.place.node_rank > 0 and self.place.local_rank == 0:
            self.terminal.error(error)

    # all

    def _arrival(self, secret: str, seat: Seat | None) -> _Arrival:
        process = own()
        return _Arrival(process.pid, process.started, secret, secrets.token_hex(8), self.device, seat)

    def _seat(self, leader: str) -> Seat | None:
        return own_seat(self.place, leader) if self.place.num_nodes > 1 else None

    def _missing(self, who: str, meeting: Meeting) -> RankdeckError:
        launcher = TITLES[self.place.launch_method]
        shared = f" They meet in {meeting.folder}, which all machines must share." if self.place.num_nodes > 1 else ""
        return RankdeckError(
            f"{launcher} started {self.place.world_size} processes, but {who} did not come within "
            f"{MEET_LIMIT_S:.0f} s.{shared}",
            f"Look at the output of {launcher} for why, and start all of them again.",
            title="A process is missing",
        )


def _may_live(arrived: dict[str, Any]) -> bool:
    """Whether a process that has arrived and not left is alive, as far as can be seen from here."""
    process = ProcessId.from_json(arrived)
    is_elsewhere = bool((arrived.get("seat") or {}).get("node"))
    return is_elsewhere or (process is not None and is_alive(process))
