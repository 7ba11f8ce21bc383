"""Rank processes of an attempt, started by this host or by the processes of a launcher.

Under torchrun, srun or mpirun each rank is started by the process that the launcher started for it
(`core.cli.launched`): so it runs where the launcher put it, and dies with it. The host asks, through a `Meeting`.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from core.config.distributed import DistributedConfig, LaunchMethod
from core.config.launcher_variables import TITLES
from core.errors import RankdeckError
from core.launch.meeting import POLL_S, Meeting
from core.launch.plan import RankCommand
from core.launch.seats import FILE as SEATS_FILE
from core.launch.seats import NodeSeats
from core.processes import ProcessTree
from core.processes.identity import ProcessId, identify, is_alive, own

_START_LIMIT_S: Final = 30.0
_KILLED: Final = -9
# A process whose rank has ended says within this time how.
_LAST_NEWS_S: Final = 2.0


class RankProcess(Protocol):
    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """The exit code as `subprocess` gives it, or None while it runs. Never waits."""


class RankProcesses(Protocol):
    """The ranks' processes of one attempt; the methods wait, and are called from one thread at a time."""

    def start(self, commands: Sequence[RankCommand], is_stopped: Callable[[], bool]) -> list[RankProcess]:
        """Start ranks in order, until it is stopped; raises `RankdeckError`."""

    def stop(self, limit_s: float) -> list[int]:
        """End all of them; return pids that would not die."""

    def close(self, limit_s: float) -> list[int]:
        """End the remaining processes and release all resources; return the pids that survive."""


class SpawnedRanks:
    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree

    def start(self, commands: Sequence[RankCommand], is_stopped: Callable[[], bool]) -> list[RankProcess]:
        started: list[RankProcess] = []
        for one in commands:
            if is_stopped():
                break
            started.append(self._tree.spawn(one.argv, one.environment(os.environ), one.cwd, one.log))
        return started

    def stop(self, limit_s: float) -> list[int]:
        return self._tree.stop(limit_s)

    def close(self, limit_s: float) -> list[int]:
        return self._tree.close(limit_s)


class Launcher:
    """The processes of a launcher, as a run's host meets them.

    Attributes:
        seats: On which machine each rank is, where there are several; None: all are on this one.
        lost: Ranks of other machines whose connection is gone.
    """

    def __init__(self, folder: Path) -> None:
        self.lost: set[int] = set()
        self._meeting = Meeting(folder, is_shared=(folder / SEATS_FILE).exists())
        self._read: dict[str, tuple[tuple[int, int], dict[str, Any] | None]] = {}
        self._arrived: dict[int, tuple[dict[str, Any] | None, ProcessId | None]] = {}
        self._asked = 0
        opened = self._meeting.read("leader.json") or {}
        self.method: LaunchMethod = DistributedConfig.from_mapping(
            {"launch_method": opened.get("method")}
        ).launch_method
        seats = self._meeting.read(SEATS_FILE)
        self.seats = None if seats is None else NodeSeats.from_dict(seats)
        self._meeting.write("host.json", {"pid": own().pid, "started": own().started})

    @property
    def machine(self) -> str:
        return "" if self.seats is None else f"{socket.gethostname()} ({self.seats.address})"

    @property
    def title(self) -> str:
        return TITLES[self.method]

    def ask(self, rank: int, what: Mapping[str, Any]) -> int:
        self._asked += 1
        self._meeting.write(f"ask-{rank}.json", {"number": self._asked, **what})
        return self._asked

    def answer(self, rank: int, number: int) -> dict[str, Any] | None:
        value = self._newest(f"rank-{rank}.json")
        return value if value is not None and value.get("number") == number else None

    def lives(self, rank: int) -> bool:
        """Return whether the process of a rank is alive; one on another machine is, until it leaves or is lost."""
        arrived = self._newest(f"arrived-{rank}.json")
        known = self._arrived.get(rank)
        if known is None or known[0] is not arrived:
            known = self._arrived[rank] = arrived, ProcessId.from_json(arrived)
        process = known[1]
        return process is not None and (rank not in self.lost if self.is_remote(rank) else is_alive(process))

    def _newest(self, name: str) -> dict[str, Any] | None:
        """Read a file, only if it was replaced: a thousand ranks are looked at many times a second."""
        self._meeting.refresh()
        try:
            status = os.stat(self._meeting.folder / name)  # noqa: PTH116, half the time of Path.stat
        except OSError:
            self._read.pop(name, None)
            return None
        version = status.st_ino, status.st_mtime_ns
        known = self._read.get(name)
        if known is None or known[0] != version:
            known = self._read[name] = version, self._meeting.read(name)
        return known[1]

    def is_whole(self, world_size: int) -> bool:
        """Whether all of its processes live. It alone can start one again, and starts all of them then."""
        return all(map(self.lives, range(world_size)))

    def is_remote(self, rank: int) -> bool:
        """Whether a rank is on another machine, so that its pid means nothing on this one."""
        return self.seats is not None and self.seats.ranks[rank].is_remote

    def end(self, code: int, error: Mapping[str, str] | None) -> None:
        self._meeting.write("over.json", {"code": code, "error": error})


class LaunchedRank:
    def __init__(self, launcher: Launcher, rank: int, number: int, pid: int) -> None:
        self._launcher = launcher
        self.rank = rank
        self.number = number
        self.pid = pid
        self.is_remote = launcher.is_remote(rank)
        self._process = None if self.is_remote else identify(pid)
        self._gone_at: float | None = None
        self._code: int | None = None

    def take_for_dead(self) -> None:
        self._launcher.lost.add(self.rank)

    def poll(self) -> int | None:
        """As `RankProcess.poll`; a rank that ended unseen together with its parent was killed."""
        if self._code is not None:
            return self._code
        answer = self._launcher.answer(self.rank, self.number)
        code = None if answer is None else answer.get("code")
        if isinstance(code, int):
            self._code = code
        elif self.is_remote:
            self._code = None if self._launcher.lives(self.rank) else _KILLED
        elif self._process is None or not is_alive(self._process):
            now = time.monotonic()
            self._gone_at = now if self._gone_at is None else self._gone_at
            if not self._launcher.lives(self.rank) or now - self._gone_at > _LAST_NEWS_S:
                self._code = _KILLED
        return self._code


class LaunchedRanks:
    """Ranks that are started by the processes of a launcher; `mark` stands in the environment of every rank."""

    def __init__(self, launcher: Launcher, mark: str) -> None:
        self._launcher = launcher
        self._mark = mark
        self._ranks: list[LaunchedRank] = []
        self._asked: dict[int, int] = {}

    def start(self, commands: Sequence[RankCommand], is_stopped: Callable[[], bool]) -> list[RankProcess]:
        for command in commands:
            self._asked[command.rank] = self._ask(command)
        started: list[RankProcess] = []
        for command in commands:
            if is_stopped():
                break
            started.append(self._started(command.rank))
        return started

    def _ask(self, command: RankCommand) -> int:
        return self._launcher.ask(
            command.rank,
            {
                "start": {
                    "argv": list(command.argv),
                    "env": dict(command.env),
                    "default_env": dict(command.default_env),
                    "removed_env": list(command.removed_env),
                    "cwd": str(command.cwd),
                    "log": str(command.log),
                    "mark": self._mark,
                }
            },
        )

    def _started(self, number: int) -> LaunchedRank:
        asked = self._asked[number]
        answer = self._wait(number, asked, _START_LIMIT_S)
        del self._asked[number]
        if answer is None:
            raise RankdeckError(
                f"The process that {self._launcher.title} started for rank {number} is gone or does not answer.",
                f"Look at the output of {self._launcher.title}.",
                title="A rank could not be started",
            )
        if isinstance(answer.get("error"), dict):
            error = answer["error"]
            raise RankdeckError(error.get("cause", ""), error.get("next_step", ""), title=error.get("title"))
        rank = LaunchedRank(self._launcher, number, asked, int(answer["pid"]))
        self._ranks.append(rank)
        return rank

    def stop(self, limit_s: float) -> list[int]:
        """End all ranks side by side; a process that does not answer is named by its rank's pid."""
        running = {rank.rank: rank for rank in self._ranks if rank.poll() is None}
        asked = {rank: self._launcher.ask(rank, {"stop": limit_s}) for rank in (*running, *self._asked)}
        deadline = time.monotonic() + limit_s + 1.0
        left: list[int] = []
        for number, ask in asked.items():
            answer, rank = self._wait(number, ask, max(0.0, deadline - time.monotonic())), running.get(number)
            if answer is not None:
                left += [pid for pid in answer.get("left", []) if isinstance(pid, int)]
            elif rank is not None and not rank.is_remote and self._launcher.lives(number):
                process = identify(rank.pid)
                left += [rank.pid] if process is not None and is_alive(process) else []
        self._asked.clear()
        self._ranks.clear()
        return left

    def close(self, limit_s: float) -> list[int]:
        return self.stop(limit_s)

    def _wait(self, rank: int, number: int, limit_s: float) -> dict[str, Any] | None:
        deadline = time.monotonic() + limit_s
        while True:
            answer = self._launcher.answer(rank, number)
            if answer is not None or time.monotonic() >= deadline or not self._launcher.lives(rank):
                return answer or self._launcher.answer(rank, number)
            time.sleep(POLL_S)


def rank_processes(
    launcher: Launcher | None, process_tree: Callable[[str], ProcessTree]
) -> Callable[[str], RankProcesses]:
    if launcher is None:
        return lambda mark: SpawnedRanks(process_tree(mark))
    return lambda mark: LaunchedRanks(launcher, mark)
