"""The desk at which machines check in, on the machine with the run's host: before the start, and when one returns.

It compares what must be the same on all of them, has each read and write a file in the folder of runs, and counts.
Agents of torchrun, which would wait in silence, are started only when enough machines are there. Machines stay at the
desk until their part is over: so both sides know within `SILENT_S` when the network or the other one is gone.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.files.atomic import explained
from core.held_files import read_utf8
from core.launch.nodes.channel import Channel, ChannelError, Server
from core.launch.nodes.key import key_file

CLOCK_LIMIT_S: Final = 30.0
LAST_CALL_S: Final = 10.0  # once the least number of machines is there, others have so long to be in the first start
POLL_S: Final = 0.25
_PROBE: Final = ".rankdeck-nodes-"
_SEEN_S: Final = 5.0  # until a file that one machine has written is seen on another: NFS asks again after 3 s
_SAME: Final = (
    ("rankdeck", "Rankdeck", "Install the same Rankdeck on all machines."),
    ("torch", "PyTorch", "Install the same PyTorch on all machines."),
    ("python", "Python", "Use the same Python on all machines."),
    ("interpreter", "the path of Python", "Install Rankdeck at the same path on all machines."),
    ("package", "the folder of Rankdeck", "Install Rankdeck at the same path on all machines."),
    ("flags", "the command and its folder", "Start the line that the first machine shows on all others, unchanged."),
    ("nodes", "the number of machines", "Ask for the same number on all machines."),
)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Values that must be the same on all machines of a run.

    Attributes:
        name: What this machine is called.
        values: What is compared, by the names in `_SAME`.
        clock: Its time, in Unix seconds.
    """

    name: str
    values: Mapping[str, str]
    clock: float = field(default_factory=time.time)


def difference(host: NodeFacts, node: NodeFacts) -> RankdeckError | None:
    """Why a machine cannot take part, with both values; None where nothing speaks against it. Pure."""
    for key, title, step in _SAME:
        ours, theirs = host.values.get(key, ""), node.values.get(key, "")
        if ours != theirs:
            values = "" if key == "flags" else f": {theirs or 'none'} on {node.name}, {ours or 'none'} on {host.name}"
            return RankdeckError(f"{title[0].upper()}{title[1:]} differs{values}.", step, title="The nodes differ")
    apart = node.clock - host.clock
    if abs(apart) > CLOCK_LIMIT_S:
        return RankdeckError(
            f"The clock of {node.name} is {abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} that of "
            f"{host.name}.",
            "Set both by a time server (chrony, systemd-timesyncd).",
            title="The clocks differ",
        )
    return None


class Desk:
    """Checks machines in.

    Args:
        facts: Of the machine with the run's host.
        folder: The folder of runs.
        least, most: With how many machines the run starts.
        report: Told in a sentence whatever happens.
        on_loss: Told which machine is gone without a word while the run trains, and how many are left.
    """

    def __init__(
        self,
        facts: NodeFacts,
        folder: Path,
        least: int,
        most: int,
        report: Callable[[str], None],
        on_loss: Callable[[str, int], None] = lambda _name, _left: None,
    ) -> None:
        self.facts = facts
        self.least, self.most = least, most
        self.report = report
        self._on_loss = on_loss
        self.folder = folder
        self.job = secrets.token_hex(8)
        self._lock = threading.Condition()
        self._joined: dict[object, tuple[str, str]] = {}  # name and address
        self._informed: set[object] = set()
        self._refused: dict[str, str] = {}  # why, by address
        self._lost: dict[str, str] = {}
        self._end: RankdeckError | None = None
        self._enough_since: float | None = None
        self._server: Server | None = None
        self._started = False
        self._closing = False
        self.probe = f"{_PROBE}{secrets.token_hex(8)}"
        self.secret = secrets.token_hex(8)

    def open(self, address: str, port: int, key: str) -> None:
        """Begins.

        Raises:
            RankdeckError: The port is taken, or the folder of runs cannot be written.
        """
        with explained(f"{self.folder} could not be written"):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / self.probe).write_text(self.secret, encoding="utf-8")
        self._server = Server(address, port, key, lambda peer: _Visitor(self, peer), self._stranger)

    def close(self) -> None:
        self._closing = True
        if self._server is not None:
            self._server.close()
        for path in self.folder.glob(f"{self.probe}*"):
            with contextlib.suppress(OSError):
                path.unlink()

    @property
    def is_complete(self) -> bool:
        with self._lock:
            here = 1 + len(self._joined)
            if self._started or here >= self.most:
                self._started = True
            elif here < self.least:
                self._enough_since = None
            elif self._enough_since is None:
                self._enough_since = time.monotonic()
            else:
                self._started = time.monotonic() - self._enough_since > LAST_CALL_S
            return self._started

    def missing(self) -> str:
        """How many machines have joined, and why others were refused, in sentences."""
        wanted = str(self.most) if self.least == self.most else f"{self.least} to {self.most}"
        with self._lock:
            why = [f"{peer} was refused: {cause}" for peer, cause in self._refused.items()]
            return " ".join([f"{1 + len(self._joined)} of {wanted} nodes are here.", *why])

    def lacks(self, fewest: int) -> list[str]:
        """The names of machines that were lost, where fewer than `fewest` are left."""
        with self._lock:
            return list(self._lost.values()) if self._started and 1 + len(self._joined) < fewest else []

    def end(self, error: RankdeckError, limit_s: float) -> bool:
        """From now on machines are told that the run has ended, and why; they ask twice a second.

        Waits until all that take part have acknowledged it or are gone.

        Returns:
            False where some have not within the limit.
        """
        self._end = error
        with self._lock:
            return self._lock.wait_for(lambda: not self._joined.keys() - self._informed, limit_s)

    def acknowledge(self, visitor: object) -> None:
        """A machine knows that its part is over."""
        with self._lock:
            self._informed.add(visitor)
            self._lock.notify_all()

    @property
    def ended(self) -> RankdeckError | None:
        return self._end

    def arrived(self, visitor: object, name: str, peer: str) -> None:
        with self._lock:
            self._joined[visitor] = name, peer
            self._refused.pop(peer, None)
            self._lost.pop(peer, None)
        self.report(f"{name} ({peer}) is here. {self.missing()}")

    def left(self, visitor: object, *, is_over: bool) -> None:
        with self._lock:
            name, peer = self._joined.pop(visitor)
            self._informed.discard(visitor)
            self._lock.notify_all()
            started, here = self._started, len(self._joined) + 1
            if started and not is_over:
                self._lost[peer] = name
        if not started:
            self.report(f"{name} has left. {self.missing()}")
        elif not is_over and not self._closing:
            self._on_loss(name, here)

    def refuse(self, peer: str, error: RankdeckError) -> None:
        """Reports why a machine may not take part."""
        with self._lock:
            known, self._refused[peer] = self._refused.get(peer), error.cause
        if known != error.cause:
            self.report(f"{peer} was refused: {error.cause} {error.next_step}")

    def _stranger(self, peer: str) -> None:
        step = f"Copy {key_file()} of this machine to the same path there."
        self.refuse(peer, RankdeckError("It has another key.", step, title="The keys of the nodes differ"))


class _Visitor:
    """One machine at the desk."""

    def __init__(self, desk: Desk, peer: str) -> None:
        self._desk = desk
        self._peer = peer
        self._name = ""
        self._is_in = False
        self._is_over = False

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if "facts" in request:
            return self._greet(request["facts"])
        if "seen" in request:
            return self._check_folder(request["seen"])
        if "over" in request:
            self._is_over = True
            self._desk.acknowledge(self)
            return {}
        if not self._is_in:
            return {"refused": RankdeckError("The machine has not checked in.", "Start the run again.").as_dict()}
        if self._desk.ended is not None:
            return {"refused": self._desk.ended.as_dict()}
        return {"start": self._desk.is_complete, "missing": self._desk.missing(), "job": self._desk.job}

    def closed(self) -> None:
        if self._is_in:
            self._desk.left(self, is_over=self._is_over)

    def _greet(self, value: Mapping[str, Any]) -> dict[str, Any]:
        node = NodeFacts(str(value.get("name")), dict(value.get("values", {})), float(value.get("clock", 0.0)))
        here = NodeFacts(self._desk.facts.name, self._desk.facts.values)
        self._name = node.name
        error = difference(here, node)
        if error is not None:
            return self._refusal(error)
        return {"folder": str(self._desk.folder), "probe": self._desk.probe}

    def _check_folder(self, seen: object) -> dict[str, Any]:
        """Whether the machine has read our file, and we can read its own."""
        folder, name = self._desk.folder, self._name
        theirs = folder / f"{self._desk.probe}-answer-{self._desk.secret}"
        if seen != self._desk.secret or not _appears(theirs):
            return self._refusal(
                RankdeckError(
                    f"{folder} is not one folder on {self._desk.facts.name} and {name}: what one writes there, the "
                    "other does not see.",
                    "Mount a shared folder at the same path on all machines, and use it for runs.",
                    option="--runs-dir PATH",
                    title="The folder of runs is not shared",
                )
            )
        with contextlib.suppress(OSError):
            theirs.unlink()
        self._is_in = True
        self._desk.arrived(self, name, self._peer)
        return {"job": self._desk.job}

    def _refusal(self, error: RankdeckError) -> dict[str, Any]:
        self._desk.refuse(self._peer, error)
        return {"refused": error.as_dict()}


class CheckIn:
    """This machine at the desk of another one.

    Args:
        channel: To the desk.
        facts: This machine's.

    Raises:
        RankdeckError: This machine cannot take part; says why.
        ChannelError: The desk is gone.
    """

    def __init__(self, channel: Channel, facts: NodeFacts) -> None:
        self._channel = channel
        try:
            self.job = self._check(facts)
        except BaseException:
            channel.close()
            raise

    def _check(self, facts: NodeFacts) -> str:
        channel = self._channel
        value = {"name": facts.name, "values": dict(facts.values), "clock": time.time()}
        asked = _accepted(channel.ask({"facts": value}))
        folder, probe = Path(str(asked["folder"])), str(asked["probe"])
        seen = _read(folder / probe) if _appears(folder / probe) else ""
        with contextlib.suppress(OSError):
            (folder / f"{probe}-answer-{seen}").write_text("", encoding="utf-8")
        return str(_accepted(channel.ask({"seen": seen}))["job"])

    def poll(self) -> tuple[bool, str]:
        """Whether the run starts, and who is missing; raises `ChannelError`, and `RankdeckError` where it has ended."""
        try:
            answer = _accepted(self._channel.ask({}))
        except ChannelError:
            raise
        except RankdeckError:
            self.leave()  # so that the other machine need not wait any longer
            raise
        return bool(answer.get("start")), str(answer.get("missing", ""))

    def leave(self) -> None:
        with contextlib.suppress(ChannelError):
            self._channel.ask({"over": True})

    def close(self) -> None:
        self._channel.close()


def _accepted(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    refused = answer.get("refused")
    if isinstance(refused, dict):
        cause, step = str(refused.get("cause")), str(refused.get("next_step"))
        raise RankdeckError(cause, step, title=str(refused.get("title")))
    if not {"job", "probe"} & answer.keys():
        raise ChannelError("lost", "The other machine gave no answer that can be read.", "Start the run again.")
    return answer


def _appears(path: Path) -> bool:
    deadline = time.monotonic() + _SEEN_S
    while not path.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _read(path: Path) -> str:
    try:
        return read_utf8(path).strip()
    except (OSError, UnicodeDecodeError):
        return ""
