"""Machines in tests: network namespaces that a switch joins, each with an address, a key and a home of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from core.launch.nodes.key import KEY_FILE
from tests.helpers.launched import Job

ADDRESSES: Final = ("10.77.0.1", "10.77.0.2", "10.77.0.3")
STRANGER: Final = "10.78.0.9"
PORT: Final = 29_400
# Why there can be no two machines here; empty: there can.
NO_NODES: Final = (
    "network namespaces are Linux's"
    if sys.platform != "linux"
    else "network namespaces are root's"
    if os.geteuid() != 0
    else "ip (iproute2) is not installed"
    if shutil.which("ip") is None
    else ""
)
_LISTENS: Final = "0A"
_CONNECT: Final = """
import select, socket, sys, time
wires = {}
for port in sys.argv[2:]:
    wire = socket.socket()
    wire.setblocking(False)
    wire.connect_ex((sys.argv[1], int(port)))
    wires[wire] = port
time.sleep(1)
done = select.select([], wires, [], 0)[1]
print(*(wires[wire] for wire in done if wire.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0))
"""


class NetNodes:
    """Machines with one disk.

    Args:
        folder: Their homes, and their output.
        count: How many.
    """

    def __init__(self, folder: Path, count: int = 2) -> None:
        self._folder = folder
        self._names = [f"rd{os.getpid()}{letter}" for letter in "abc"[:count]]
        self._switch, self._stranger = f"rd{os.getpid()}s", f"rd{os.getpid()}x"
        self.nics = [f"rv{os.getpid()}{letter}" for letter in "abc"[:count]]
        self.jobs: list[Job] = []
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "switch", "up")
        for name, nic, address in zip(self._names, self.nics, ADDRESSES, strict=False):
            self._join(name, nic, address)
        self._join(self._stranger, f"rv{os.getpid()}x", STRANGER)
        _ip("-n", self._stranger, "route", "add", "10.77.0.0/24", "dev", f"rv{os.getpid()}x")
        for name, nic in zip(self._names, self.nics, strict=True):
            _ip("-n", name, "route", "add", "10.78.0.0/24", "dev", nic)
        for number in range(count):
            self.key(number, "1" * 64)

    def _join(self, name: str, nic: str, address: str) -> None:
        _ip("netns", "add", name)
        _ip("link", "add", nic, "netns", name, "type", "veth", "peer", "name", nic, "netns", self._switch)
        _ip("-n", self._switch, "link", "set", nic, "master", "switch", "up")
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", nic)
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", name, "link", "set", nic, "up")

    def protect(self, lines: Sequence[str]) -> None:
        for name in self._names:
            for line in lines:
                command = ["ip", "netns", "exec", name, *shlex.split(line)]
                subprocess.run(command, timeout=30, check=True)

    def reachable(self, ports: Sequence[int], number: int | None = None) -> list[int]:
        """The first machine's ports that another one, or one that is no part of it, can connect to within 1 s."""
        name = self._stranger if number is None else self._names[number]
        command = ["ip", "netns", "exec", name, sys.executable, "-S", "-c", _CONNECT, ADDRESSES[0], *map(str, ports)]
        done = subprocess.run(command, timeout=30, check=True, capture_output=True, encoding="utf-8")
        return [int(word) for word in done.stdout.split()]

    def key(self, number: int, key: str) -> None:
        folder = self._home(number) / "rankdeck"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / KEY_FILE).write_text(key, encoding="utf-8")

    def start(self, number: int, command: Sequence[str], *flags: str, nodes: str = "2") -> Job:
        """Starts `python -m core …` on a machine, with the flags of a run on both."""
        output = self._folder / f"output{len(self.jobs)}"
        output.mkdir()
        own = ["--nodes", nodes, "--nic", self.nics[number], "--rdzv-endpoint", f"{ADDRESSES[0]}:{PORT}"]
        enter = ["ip", "netns", "exec", self._names[number], "env", "--chdir", str(self._folder), sys.executable]
        job = Job([*enter, *command, *own, *flags], output, {"XDG_DATA_HOME": str(self._home(number))})
        self.jobs.append(job)
        return job

    def enter(self, number: int) -> list[str]:
        """A command that starts another one on a machine."""
        return ["ip", "netns", "exec", self._names[number]]

    @contextlib.contextmanager
    def entered(self, number: int) -> Iterator[None]:
        """This thread is on a machine meanwhile, and so are the threads and processes that it starts."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self._names[number]}", os.O_RDONLY)
        try:
            _set_namespace(there)
            yield
        finally:
            _set_namespace(before)
            os.close(before)
            os.close(there)

    def run(self, number: int, *command: str) -> int:
        home = f"XDG_DATA_HOME={self._home(number)}"
        enter = ["ip", "netns", "exec", self._names[number], "env", home, sys.executable, "-m", "core", *command]
        return subprocess.run(enter, timeout=60, check=False, stdout=subprocess.DEVNULL).returncode

    @contextlib.contextmanager
    def paused(self, number: int) -> Iterator[None]:
        """A machine that stands still, as one whose lid is shut for a moment, or whose disk does not answer."""
        processes = self.processes(number)
        for process in processes:
            process.suspend()
        yield
        for process in processes:
            process.resume()

    def plug(self, *, is_in: bool) -> None:
        _ip("-n", self._names[1], "link", "set", self.nics[1], "up" if is_in else "down")

    def processes(self, number: int, *parts: str) -> list[psutil.Process]:
        """Those of a machine whose command holds these words one after another."""
        found = []
        for pid in _ip("netns", "pids", self._names[number]).split():
            try:
                process = psutil.Process(int(pid))
                if " ".join(parts) in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def workers(self, number: int) -> list[psutil.Process]:
        agents = self.processes(number, "torch.distributed.run")
        return [child for agent in agents for child in agent.children()]

    def kill(self, number: int, find: Callable[[int], list[psutil.Process]] | None = None) -> None:
        for process in self.processes(number) if find is None else find(number):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue

    def listening(self, number: int) -> set[tuple[str, int]]:
        pids = _ip("netns", "pids", self._names[number]).split()
        found = set()
        for kind, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
            for line in Path(f"/proc/{pids[0]}/net/{kind}").read_text(encoding="ascii").splitlines()[1:]:
                local, state = line.split()[1], line.split()[3]
                if state == _LISTENS:
                    address, port = local.split(":")
                    found.add((_address(address, family), int(port, 16)))
        return found

    def close(self) -> None:
        for job in self.jobs:
            job.close()
        for number, name in enumerate(self._names):
            self.kill(number)
            _ip("netns", "del", name)
        for name in (self._stranger, self._switch):
            _ip("netns", "del", name)

    def _home(self, number: int) -> Path:
        return self._folder / f"home{number}"


def _set_namespace(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns is Python 3.12's
    if libc.setns(descriptor, 0):
        raise OSError(ctypes.get_errno(), "setns")


def _address(text: str, family: socket.AddressFamily) -> str:
    words = [bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8)]  # little-endian words
    return socket.inet_ntop(family, b"".join(words))


def _ip(*arguments: Any) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, encoding="utf-8", timeout=30, check=True)
    return done.stdout
