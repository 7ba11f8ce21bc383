"""Machines in tests: network namespaces that a switch joins, each with an address of its own, and one disk."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from tests.helpers.launched import Job

ADDRESSES: Final = ("10.77.0.1", "10.77.0.2")
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


class NetNodes:
    """Two machines.

    Args:
        folder: Their homes, and their output.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = [f"rd{os.getpid()}{letter}" for letter in "ab"]
        self._switch = f"rd{os.getpid()}s"
        self.nics = [f"rv{os.getpid()}{letter}" for letter in "ab"]
        self.jobs: list[Job] = []
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "switch", "up")
        for name, nic, address in zip(self._names, self.nics, ADDRESSES, strict=True):
            _ip("netns", "add", name)
            _ip("link", "add", nic, "netns", name, "type", "veth", "peer", "name", nic, "netns", self._switch)
            _ip("-n", self._switch, "link", "set", nic, "master", "switch", "up")
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", nic)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", nic, "up")

    def torchrun(self, number: int, command: Sequence[str], *flags: str, processes: int = 1) -> Job:
        """Start torchrun's agent on a machine, and with it processes of `python -m core …`."""
        output = self._folder / f"output{len(self.jobs)}"
        output.mkdir()
        agent = [
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes=2", f"--nproc-per-node={processes}"),
            *("--rdzv-backend=c10d", f"--rdzv-endpoint={ADDRESSES[0]}:{PORT}", "--rdzv-id=a-job"),
            *(f"--rdzv-conf=is_host={int(number == 0)}", f"--local-addr={ADDRESSES[number]}", *flags),
        ]
        enter = ["ip", "netns", "exec", self._names[number], "env", "--chdir", str(self._folder)]
        home = {"XDG_DATA_HOME": str(self._folder / f"home{number}"), "TORCH_CPP_LOG_LEVEL": "ERROR"}
        self.jobs.append(Job([*enter, *agent, *command], output, home))
        return self.jobs[-1]

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

    def kill(self, number: int, *parts: str) -> None:
        """kill -9 of a machine's processes whose command holds these words."""
        for process in self.processes(number, *parts):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue

    def listening(self, number: int) -> set[tuple[str, int]]:
        """The addresses and ports at which something on a machine listens."""
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
        """Ends everything on both machines, and removes them."""
        for job in self.jobs:
            job.close()
        for number, name in enumerate(self._names):
            self.kill(number)
            _ip("netns", "del", name)
        _ip("netns", "del", self._switch)


def _address(text: str, family: socket.AddressFamily) -> str:
    words = [bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8)]  # little-endian words
    return socket.inet_ntop(family, b"".join(words))


def _ip(*arguments: Any) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, encoding="utf-8", timeout=30, check=True)
    return done.stdout
