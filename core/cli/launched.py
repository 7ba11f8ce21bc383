"""Launched processes: `rankdeck train` and `resume` under torchrun, srun or mpirun.

Each process that the launcher started starts one rank. The first of them checks the run, makes its folder and starts
the run's host, as a run in the foreground does, and follows it; the others wait for it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.cli.follow import Follower, StopLadder, exit_code, report_ending
from core.cli.interrupts import counted_interrupts
from core.cli.rank_starter import RankStarter
from core.cli.terminal import Terminal
from core.client import resume_run, stop_run, wait_for_host_to_end
from core.config.batch import nearest_batch
from core.config.distributed import DistributedConfig
from core.config.launcher_variables import TITLES
from core.config.layers import DeviceCount
from core.config.mode import Mode
from core.errors import ConfigError, RankdeckError, UsageError
from core.launch.launched import check_devices, check_one_machine, given_device
from core.launch.meeting import POLL_S, Meeting, RememberedRun, folder_of
from core.launch.mode import recipe_platform, usable_devices
from core.launch.nodes.agent import OUTPUT_FLAGS
from core.launch.nodes.job import ENV_NODE
from core.machine.devices.device import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.resolve import device_texts
from core.machine.devices.visible import VARIABLE
from core.machine.platform import this_platform
from core.metrics.metrics_file import whole_bytes
from core.processes.identity import ProcessId, identify, is_alive, own
from core.protocol.rank_context import ENV_MEETING, ENV_RANK
from core.recipes.manifest import Recipe
from core.records import read_record
from core.resume.plan import ResumePlan
from core.resume.planner import plan_resume
from core.run_folder.store import RunStore
from core.run_folder.waiting_host import WaitingHost

# For all processes to arrive: a launcher starts them within a moment, and each has to import Rankdeck.
MEET_LIMIT_S: Final = 60.0
_OPEN_LIMIT_S: Final = 300.0  # for the first one to check the run; a large dataset takes a while
_FAREWELL_S: Final = 5.0
_END_LIMIT_S: Final = 60.0  # for the host of an earlier start, whose ranks the launcher has ended, to end too
_FOLLOW_POLL_S: Final = 0.25


def launched_place() -> DistributedConfig | None:
    """This process's place if a launcher has started it; None for a command typed by hand, or started by a rank.

    Raises:
        ConfigError: The launcher's variables cannot be read.
    """
    if ENV_RANK in os.environ:
        return None
    place = DistributedConfig.from_env(os.environ)
    return place if place.is_launched else None


def check_arguments(place: DistributedConfig, arguments: argparse.Namespace) -> None:
    """Refuses what processes of a launcher cannot do.

    Raises:
        UsageError: Names it.
    """
    if ENV_NODE not in os.environ:
        check_one_machine(place)
    title = TITLES[place.launch_method]
    for name in ("detach", "dry_run"):
        if getattr(arguments, name, False):
            flag = f"--{name.replace('_', '-')}"
            cause = (
                f"{flag} is given, but the processes that {title} started are the run's ranks and stay until its end."
            )
            raise UsageError(cause, f"Leave out {flag}, or start the run without {title}.")
    passed = getattr(arguments, "local_rank", None)
    if passed is not None and passed != place.local_rank:
        cause = f"--local-rank {passed} is given, but LOCAL_RANK of {title} is {place.local_rank}."
        raise UsageError(cause, "Leave out --local-rank.")


def with_others(devices: Sequence[Device]) -> list[Device]:
    """This machine's devices, and those of a run's that are GPUs of another one."""
    with DeviceMonitor() as monitor:
        own = monitor.devices()
    known = {device.uuid for device in own}
    return [*own, *(device for device in devices if device.kind == "cuda" and device.uuid not in known)]


def own_device(
    place: DistributedConfig, asked: Sequence[str], count: DeviceCount | None, recipe: Recipe | None
) -> Device:
    """The device that the launcher has given this process; raises as `given_device`."""
    platform = this_platform()
    with DeviceMonitor() as monitor:
        usable, _ = usable_devices(monitor.devices(), recipe_platform(recipe, platform) if recipe else platform)
    return given_device(place, asked, count, usable)


@dataclass(frozen=True, slots=True)
class LaunchedRun:
    """What all processes of a launcher do together.

    Args:
        place: This process's.
        device: The one that the launcher has given it.
        begin: Starts the run on these devices; returns it, and how many bytes of its metrics are not new. For the
            first process.
        as_json: It prints metrics and states as JSON.
    """

    place: DistributedConfig
    device: Device
    begin: Callable[[Sequence[Device]], tuple[RunStore, int]]
    terminal: Terminal
    as_json: bool

    def run(self) -> int:
        """To the end of the run; returns the exit code.

        Raises:
            RankdeckError: There is no run.
        """
        parent = identify(os.getppid()) or ProcessId(os.getppid(), 0.0)
        meeting = Meeting(folder_of(self.place, parent))
        starter = RankStarter(meeting, self.place, parent)
        if self.place.rank == 0:
            return self.lead(meeting, starter, keep_run=self.place.restart_count > 0)
        return self.follow(meeting, starter)

    # the first process

    def lead(
        self, meeting: Meeting, starter: RankStarter, *, keep_run: bool, about: Mapping[str, Any] | None = None
    ) -> int:
        secret = meeting.begin(own(), self.place.launch_method, keep_run=keep_run, about=about)
        code, refused = RankdeckError.exit_code, None
        try:
            meeting.write("arrived-0.json", {"pid": own().pid, "started": own().started})
            devices = self.gather(meeting, secret)
            check_devices(self.place, devices)
            os.environ[ENV_MEETING] = str(meeting.folder)  # the host's from here on
            if any(device.kind == "cuda" for device in devices):
                os.environ.pop(VARIABLE, None)  # it may show this process its own GPU only; UUIDs name all
            store, offset = self.open_run(meeting, devices, keep_run=keep_run)
            config = store.config()
            meeting.remember_run(RememberedRun(store.dir, config.global_batch_size, config.mode))
            meeting.write("open.json", {"run_dir": str(store.dir)})
            self.terminal.say(f"Run {store.dir.name} in {store.dir}")
            code = self.watch(store, starter, offset)
        except RankdeckError as error:
            code, refused = error.exit_code, error
            self.terminal.error(error)
        finally:
            # The launcher sends SIGTERM as soon as another process has ended; the folder would be left behind.
            with counted_interrupts(alike=True):
                if refused is not None:
                    meeting.write("open.json", {"exit_code": code, "error": refused.as_dict()})
                self._await_others(meeting)
                meeting.remove(forget_run=self.forgets_run(code, starter))
        return code

    def forgets_run(self, _code: int, _starter: RankStarter) -> bool:
        """Whether no process that the launcher starts later continues the run."""
        return _code == 0 or self.place.restart_count >= self.place.max_restarts

    def gather(self, meeting: Meeting, secret: str) -> list[Device]:
        """The devices of all processes, by rank, once all are there."""
        flags, devices = _flags(), {0: self.device}
        deadline = time.monotonic() + MEET_LIMIT_S
        while len(devices) < self.place.world_size:
            for rank in set(range(1, self.place.world_size)) - devices.keys():
                arrived = meeting.read(f"arrived-{rank}.json")
                if arrived is None or arrived.get("secret") != secret:
                    continue
                if arrived["flags"] != flags:
                    raise UsageError(
                        f"Rank {rank} was started with other arguments than rank 0.",
                        "Start all processes with the same command.",
                        title="The processes were started differently",
                    )
                devices[rank] = read_record(Device, arrived["device"])
            if time.monotonic() > deadline:
                missing = sorted(set(range(self.place.world_size)) - devices.keys())
                raise self.missing(f"{'ranks' if len(missing) > 1 else 'rank'} {', '.join(map(str, missing))}")
            time.sleep(POLL_S)
        return [devices[rank] for rank in range(self.place.world_size)]

    @property
    def command(self) -> ProcessId | None:
        """The process that has these started again and again, and stays meanwhile; None where there is none."""
        return None

    def open_run(self, meeting: Meeting, devices: Sequence[Device], *, keep_run: bool) -> tuple[RunStore, int]:
        """The run, and how much of its metrics is not new."""
        earlier = meeting.remembered_run() if keep_run else None
        if earlier is None:
            return self.begin(devices)
        store = RunStore.open(earlier.run_dir)
        with WaitingHost() as host:  # importing what it needs takes as long as planning
            wait_for_host_to_end(store, _END_LIMIT_S)
            plan = self._plan(store, devices, earlier)
            for line in plan.lines():
                self.terminal.warn(line)
            offset = whole_bytes(store.metrics)
            return resume_run(plan, host, continues_for=self.command), offset

    def _plan(self, store: RunStore, devices: Sequence[Device], began: RememberedRun) -> ResumePlan:
        """How the run continues on these devices: as it began, as far as they can.

        One device that is left cannot share the model's state, so it holds all of it. Where the global
        batch cannot be divided, the nearest that can is taken.
        """
        config, batch = store.config(), began.global_batch
        mode = Mode.SINGLE if began.mode.is_sharded and len(devices) == 1 else began.mode
        changes: dict[str, Any] = {"devices": ",".join(device_texts(devices)), "nodes": config.nodes or ""}
        if batch != config.global_batch_size:
            changes["global_batch_size"] = batch
        if mode != config.mode:
            changes["mode"] = mode

        def plan() -> ResumePlan:
            return plan_resume(
                str(store.dir),
                store.dir.parent,
                changes,
                available=with_others(devices),
                accept_code=True,
                continues_for=self.command,
            )

        try:
            return plan()
        except ConfigError as error:
            if error.field != "global_batch_size" or batch is None:
                raise
            changes["global_batch_size"] = nearest_batch(batch, len(devices))
            return plan()

    def watch(self, store: RunStore, starter: RankStarter, offset: int) -> int:
        """Shows the run until its end; returns the exit code."""
        with counted_interrupts(alike=True) as interrupts:
            starter.start()
            follower = Follower(store, self.terminal, self.as_json, offset, only_host=True)
            ending = follower.until_end(interrupts, self.on_interrupt(store, starter))
            report_ending(ending, store, self.terminal)
            starter.ended(_END_LIMIT_S)  # until the host lets go: Slurm ends what lives when its processes have
        return exit_code(ending)

    def on_interrupt(self, store: RunStore, _starter: RankStarter) -> Callable[[int], bool]:
        return StopLadder(store, self.terminal).climb

    def _await_others(self, meeting: Meeting) -> None:
        """Leaves the folder to the others until they have read how it ended."""
        names = [f"arrived-{rank}.json" for rank in range(1, self.place.world_size)]
        deadline = time.monotonic() + _FAREWELL_S
        while time.monotonic() < deadline:
            others = [ProcessId.from_json(meeting.read(name)) for name in names]
            if not any(process is not None and is_alive(process) for process in others):
                return
            time.sleep(POLL_S)

    # the others

    def follow(self, meeting: Meeting, starter: RankStarter) -> int:
        leader = self.arrive(meeting)
        opened = self.opened(meeting, leader)
        if "run_dir" not in opened:
            return int(opened.get("exit_code", RankdeckError.exit_code))  # the first process says why
        store = RunStore(Path(opened["run_dir"]))
        with counted_interrupts(alike=True) as interrupts:
            starter.start()
            handled = 0
            while not starter.ended(_FOLLOW_POLL_S):
                if handled < interrupts.count:
                    handled += 1
                    with contextlib.suppress(RankdeckError):  # it has ended, or the first process has asked already
                        stop_run(store, now=handled > 1)
        return starter.code

    def arrive(self, meeting: Meeting, **about: Any) -> ProcessId:
        """Tells the first process that this one is there, once that is."""
        deadline = time.monotonic() + MEET_LIMIT_S
        while True:
            found = meeting.leader()
            if found is not None:
                leader, secret = found
                device = dataclasses.asdict(self.device)
                arrival = {"pid": own().pid, "started": own().started, "secret": secret, "flags": _flags(), **about}
                with contextlib.suppress(RankdeckError):  # the folder is just being made again
                    meeting.write(f"arrived-{self.place.rank}.json", {**arrival, "device": device})
                    return leader
            if time.monotonic() > deadline:
                raise self.missing("rank 0")
            time.sleep(POLL_S)

    def opened(self, meeting: Meeting, leader: ProcessId) -> dict[str, Any]:
        """What the first process says of the run; empty where that is gone."""
        deadline = time.monotonic() + _OPEN_LIMIT_S
        while True:
            opened = meeting.read("open.json")
            if opened is not None:
                return opened
            if not meeting.lives(leader) or time.monotonic() > deadline:
                return {}
            time.sleep(POLL_S)

    def missing(self, who: str) -> RankdeckError:
        return RankdeckError(
            f"{TITLES[self.place.launch_method]} started {self.place.world_size} processes, but {who} did not "
            f"come within {MEET_LIMIT_S:.0f} s.",
            f"Look at the output of {TITLES[self.place.launch_method]} for why, and start all of them again.",
            title="A process is missing",
        )


def _flags() -> str:
    flags = [flag for flag in sys.argv[1:] if not flag.replace("_", "-").startswith("--local-rank")]
    flags = [flag for flag in flags if flag not in OUTPUT_FLAGS]
    return hashlib.sha256(json.dumps([flags, os.getcwd()]).encode()).hexdigest()  # noqa: PTH109
