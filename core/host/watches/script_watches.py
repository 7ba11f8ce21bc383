"""Watches of scripts: ranks that each train a copy of the model, and a loss that is not finite.

A process group leaves connections between its ranks for as long as it lives: to its store, and gloo's or NCCL's own.
Steps on several ranks without any such connection mean that each rank trains a copy of its own, mostly unknown to the
person.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import psutil

from core.host.ranks import Rank, Ranks
from core.host.services import HostServices
from core.host.states import AttemptPhase
from core.host.watches.watch import Watch

# How long all ranks have made steps before they are looked at, and until they are looked at once more.
_SETTLED_S: Final = 5.0
_LOOKS: Final = 2

Address = tuple[str, int]


class OwnCopies(Watch):
    """Watches the ranks of one attempt and emits one alert. Must be used inside a running event loop."""

    def __init__(self, services: HostServices, ranks: Ranks) -> None:
        self._ranks = ranks
        self._emit = services.stream.emit
        several = ranks.run.recipe.self_contained and ranks.synchronised and len(ranks.all) > 1
        self._looks_left = _LOOKS if several else 0
        self._look_at: float | None = None
        self._looking: asyncio.Future[bool] | None = None

    def tick(self, now: float, phase: AttemptPhase) -> None:
        if not self._looks_left or not phase.is_working:
            return
        if any(rank.first_step is None or rank.child is None for rank in self._ranks):
            return
        if self._looking is not None:
            if self._looking.done():
                self._take(self._looking.result())
        elif self._look_at is None:
            self._look_at = now + _SETTLED_S
        elif now >= self._look_at:
            self._look_at = None
            pids = [rank.child.pid for rank in self._ranks if rank.child is not None]
            self._looking = asyncio.get_running_loop().run_in_executor(None, may_be_connected, pids)

    def _take(self, connected: bool) -> None:
        self._looking = None
        self._looks_left = 0 if connected else self._looks_left - 1
        if connected or self._looks_left:
            return
        # One that hangs holds up no other, and is told by itself.
        self._ranks.are_copies = True
        self._emit(
            "alert",
            kind="own_copies",
            title="Each process trains its own copy",
            cause=f"The script runs in {len(self._ranks.all)} processes that made no connection to each other. Without "
            "a process group each one trains the whole model by itself.",
            next_step="To train one model on all devices, let the script call torch.distributed.init_process_group "
            "and wrap its model in DistributedDataParallel. If one copy is enough, choose one device; if separate "
            "copies are what you want, choose the mode Independent.",
        )


class LossWatch(Watch):
    def __init__(self, services: HostServices, ranks: Ranks) -> None:
        self._emit = services.stream.emit
        self._is_on = ranks.run.recipe.self_contained
        self._bad: set[int] = set()

    def take(self, rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        """Read `nonfinite` of each line: names of numbers that were not finite, and are null there."""
        for line in lines if self._is_on else ():
            bad = [name for name in line.get("nonfinite") or () if "loss" in str(name)]
            if not bad:
                if any("loss" in name and value is not None for name, value in line.items()):
                    self._bad.discard(rank.number)
                continue
            first = not self._bad
            self._bad.add(rank.number)
            if first:
                self._report(rank, line.get("step"), str(bad[0]))

    def _report(self, rank: Rank, step: Any, name: str) -> None:
        at = f" at step {step}" if isinstance(step, int) else ""
        what = "the loss" if name == "loss" else f"“{name}”"
        self._emit(
            "alert",
            kind="nonfinite_loss",
            of=rank.number,
            step=step if isinstance(step, int) else None,
            title="The loss is not finite",
            cause=f"{rank.device} reports {what} as NaN or infinite{at}.",
            next_step="Stop the run, lower the learning rate or check the data of that step, and continue from the "
            "script's last good checkpoint.",
        )


def may_be_connected(wrappers: Sequence[int]) -> bool:
    """Whether the processes below any two of these have a TCP connection to each other or to one local process.

    `wrappers` are one process for each rank, which started its script. True as well when it cannot be found out.
    """
    try:
        ours = {address.address for addresses in psutil.net_if_addrs().values() for address in addresses}
        trees = [_connections(pid) for pid in wrappers]
    except (psutil.Error, OSError, NotImplementedError):
        return True
    for one, other in combinations(trees, 2):
        if one & {(remote, local) for local, remote in other}:
            return True
        if any(remote[0] in ours for remote in {r for _, r in one} & {r for _, r in other}):
            return True  # a store, or a server that both talk to
    return False


def _connections(wrapper: int) -> set[tuple[Address, Address]]:
    found = set()
    for process in psutil.Process(wrapper).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            for connection in process.net_connections(kind="tcp"):
                if connection.raddr and connection.status == psutil.CONN_ESTABLISHED:
                    found.add((_address(*connection.laddr), _address(*connection.raddr)))
    return found


def _address(ip: str, port: int) -> Address:
    return ip.removeprefix("::ffff:"), port
