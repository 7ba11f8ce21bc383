"""Ranks of trials on other machines, as the machine that asks for them sees them (docs/decisions/0055).

The command on each other machine (`core.trials.helper`) is connected, and asks ten times a second what there is to do.
So it starts and ends ranks there, and carries the small files by which ranks of a set speak with each other.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.launch.nodes.channel import Server
from core.launch.nodes.job import NodeJob
from core.launch.nodes.seats import NodeSeats
from core.launch.plan import RankCommand
from core.records import RecordError
from core.trials.answers import Death
from core.trials.machines import Machines, TrialMachine, label
from core.trials.set_files import SetFiles

CLOSE_LIMIT_S: Final = 10.0
"""For another machine to end its ranks of a set."""
_GOODBYE_S: Final = 3.0
_POLL_S: Final = 0.05
_MOST_CHARACTERS: Final = 1 << 19
"""Of the files in one answer; a channel's line may have twice as many."""


class TrialNodes:
    """All machines, once `gather` has returned.

    Args:
        job: This machine's part.
        own: This machine.
        key: What the others must know.

    Attributes:
        machines: In the order of ranks, this one first.

    Raises:
        RankdeckError: The port is taken.
    """

    def __init__(self, job: NodeJob, own: TrialMachine, key: str) -> None:
        self.job = job
        self.machines = Machines((own,))
        self._lock = threading.RLock()
        self._guests: list[_Guest] = []
        self._numbers = itertools.count(1)
        self._is_gathered = False
        self._code = 0
        self._is_over = False
        self._server = Server(job.address, job.meeting_port, key, lambda _: _Guest(self))

    def gather(self, others: int, limit_s: float, cancelled: Callable[[], bool]) -> None:
        """Waits for the other machines, and orders them by name.

        Raises:
            RankdeckError: One has not come.
        """
        deadline = time.monotonic() + limit_s
        while len(self._guests) < others and time.monotonic() < deadline and not cancelled():
            time.sleep(_POLL_S)
        with self._lock:
            self._is_gathered = True
            self._guests.sort(key=lambda guest: (guest.machine.name, guest.machine.address))
            self.machines = Machines((*self.machines.all, *(guest.machine for guest in self._guests)))
            for node, guest in enumerate(self._guests, 1):
                guest.node = node
        if len(self._guests) < others and not cancelled():
            raise RankdeckError(
                f"{others - len(self._guests)} of {others} other machines have checked in and then did not answer "
                f"for {limit_s:.0f} s.",
                "Look at the output there, and start again.",
                title="A node is missing",
            )

    def seats(self, ranks: int) -> NodeSeats | None:
        """Where the first `ranks` ranks are; None: all on this machine."""
        return self.machines.seats(self.job, ranks)

    def open_set(self, folder: Path, commands: Sequence[RankCommand], seats: NodeSeats) -> RemoteSet:
        """Has ranks of a new set started; `folder`: this machine's."""
        number = next(self._numbers)
        with self._lock:
            parts = {
                guest: _Part(
                    folder, frozenset(rank for rank, seat in enumerate(seats.ranks) if seat.node == guest.node)
                )
                for guest in self._guests
            }
            for guest, part in parts.items():
                if part.ranks:
                    guest.open(number, part, [command for command in commands if command.rank in part.ranks])
        return RemoteSet(self, number, {guest: part for guest, part in parts.items() if part.ranks})

    def close_set(self, number: int, guests: Iterable[_Guest]) -> None:
        """Has a set ended."""
        with self._lock:
            for guest in guests:
                guest.close_set(number)

    def close(self, code: int) -> None:
        """Tells the other machines that this is over, and with which exit code; waits a moment until they know."""
        self._code, self._is_over = code, True
        deadline = time.monotonic() + _GOODBYE_S
        while any(not guest.is_gone for guest in self._guests) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self._server.close()

    # for guests, in threads of the server

    def welcome(self, guest: _Guest, value: Mapping[str, Any]) -> dict[str, Any]:
        """A machine has introduced itself."""
        try:
            guest.machine = TrialMachine.from_dict(value)
        except RecordError:
            return {"refused": "Its first line cannot be read."}
        with self._lock:
            if self._is_gathered:
                return {"refused": "The benchmark began without this machine."}
            self._guests.append(guest)
        return {}

    def news_for(self, guest: _Guest, news: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Takes what a machine reports, and returns what it is to do."""
        with self._lock:
            for item in news:
                guest.take(item)
            if self._is_over:
                return {"over": self._code}
            return {"orders": guest.orders()}

    def lost(self, guest: _Guest) -> None:
        """The connection to a machine has ended."""
        with self._lock:
            guest.is_gone = True
            if not self._is_gathered and guest in self._guests:
                self._guests.remove(guest)


class _Part:
    """What of one set is on one other machine.

    Attributes:
        ranks: Those there.
        deaths: How some of them ended.
        is_closing: Nothing of them is wanted any more.
        is_closed: All of them have been ended.
    """

    def __init__(self, folder: Path, ranks: frozenset[int]) -> None:
        self.ranks = ranks
        self.files = SetFiles(folder, lambda rank: rank not in ranks, lambda rank: rank in ranks)
        self.deaths: dict[int, Death] = {}
        self.is_closing = self.is_closed = False


class _Guest:
    """One other machine; answers its connection."""

    def __init__(self, nodes: TrialNodes) -> None:
        self._nodes = nodes
        self._parts: dict[int, _Part] = {}
        self._orders: deque[dict[str, Any]] = deque()
        self.machine = TrialMachine("", "", "", 1, ())
        self.node = 0
        self.is_gone = False

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if "machine" in request:
            return self._nodes.welcome(self, request["machine"])
        return self._nodes.news_for(self, request.get("news", ()))

    def closed(self) -> None:
        self._nodes.lost(self)

    def open(self, number: int, part: _Part, commands: Sequence[RankCommand]) -> None:
        """Orders the ranks of a set."""
        self._parts[number] = part
        for command in commands:
            start = {
                "rank": command.rank,
                "argv": list(command.argv),
                "env": dict(command.env),
                "default_env": dict(command.default_env),
                "removed_env": list(command.removed_env),
            }
            self._orders.append({"set": number, "start": start})

    def close_set(self, number: int) -> None:
        """Orders its end."""
        self._parts[number].is_closing = True
        self._orders.append({"set": number, "close": True})

    def orders(self) -> list[dict[str, Any]]:
        """What there is to do, as much as one line carries."""
        for number, part in self._parts.items():
            if not part.is_closing:
                self._orders.extend({"set": number, **message} for message in part.files.news())
        found: list[dict[str, Any]] = []
        characters = 0
        while self._orders and characters < _MOST_CHARACTERS:
            found.append(self._orders.popleft())
            characters += len(str(found[-1].get("text", "")))
        return found

    def take(self, item: Mapping[str, Any]) -> None:
        """Takes one message."""
        part = self._parts.get(int(item.get("set", 0)))
        if part is None:
            return
        if "file" in item and not part.is_closing:
            with contextlib.suppress(RankdeckError):  # the disk is full: the rank's answer does not come
                part.files.take(item)
        elif "ended" in item and int(item["ended"]) in part.ranks:
            part.deaths[int(item["ended"])] = Death(str(item.get("text")), item.get("by_force") is True)
        elif "closed" in item:
            part.is_closed = True


class RemoteSet:
    """Ranks of one set on other machines."""

    def __init__(self, nodes: TrialNodes, number: int, parts: Mapping[_Guest, _Part]) -> None:
        self._nodes = nodes
        self._number = number
        self._parts = parts

    def rank(self, rank: int) -> RemoteRank:
        """One of them."""
        return next(RemoteRank(rank, guest, part) for guest, part in self._parts.items() if rank in part.ranks)

    def close(self) -> None:
        """Ends them; waits until they have."""
        self._nodes.close_set(self._number, self._parts)
        deadline = time.monotonic() + CLOSE_LIMIT_S
        while any(not (part.is_closed or guest.is_gone) for guest, part in self._parts.items()):
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_S)


class RemoteRank:
    """A rank on another machine."""

    def __init__(self, rank: int, guest: _Guest, part: _Part) -> None:
        self._rank, self._guest, self._part = rank, guest, part

    @property
    def has_ended(self) -> bool:
        """Whether its process, or its machine, is gone."""
        return self.death is not None

    @property
    def death(self) -> Death | None:
        """How it ended; None while it runs."""
        if self._rank in self._part.deaths:
            return self._part.deaths[self._rank]
        if self._guest.is_gone:
            where = label(self._guest.node + 1)
            return Death(f"was on {where}, which is gone, or the network to it is", by_force=False)
        return None
