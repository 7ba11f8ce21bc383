"""Slurm clusters for a test: munged, slurmctld and slurmd of Debian in a folder of their own; one or two nodes."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

PROGRAMS: Final = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
_LIMIT_S: Final = 60.0
_CONF: Final = """
ClusterName=rankdeck
SlurmctldHost={host}({address})
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,batch_sched_delay=1
KillWait=5
GresTypes=gpu
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP {sharing}
"""
_NODE: Final = "NodeName={name} NodeAddr={address} CPUs=4 {gpus} State=UNKNOWN"
_CHARACTER_DEVICE: Final = 0o020666


def why_not() -> str:
    """Why there can be no cluster here; empty where there can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if sys.platform != "linux" or missing:
        return f"needs Slurm: {', '.join(missing)} not installed"
    return "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "a cluster in a folder of its own needs root"


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node.

    Attributes:
        name: Its name.
        address: Where its slurmd listens.
        enter: The command that enters its network and has its name; empty: this machine.
    """

    name: str
    address: str
    enter: tuple[str, ...] = ()


@contextmanager
def cluster(gpus: int = 0) -> Iterator[dict[str, str]]:
    """Runs one of a single node, with GPUs that are devices by name only; yields the variables for its commands."""
    node = SlurmNode(socket.gethostname().split(".")[0], "127.0.0.1")
    with _cluster([node], "127.0.0.1", gpus, "OverSubscribe=FORCE:4") as variables:
        yield variables


BRIDGE: Final = "10.78.0.254"


@contextmanager
def two_nodes() -> Iterator[dict[str, str]]:
    """Runs one of two nodes, which are network namespaces with names of their own; their interface is ``eth0``."""
    mark = str(os.getpid())
    bridge, spaces = f"rs{mark}", [f"rs{mark}{letter}" for letter in "ab"]
    _remove_left_over()
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{BRIDGE}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number, space in enumerate(spaces, start=1):
            _ip("netns", "add", space)
            _ip("link", "add", f"{space}v", "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", f"{space}v", "master", bridge, "up")
            _ip("-n", space, "addr", "add", f"10.78.0.{number}/24", "dev", "eth0")
            for name in ("lo", "eth0"):
                _ip("-n", space, "link", "set", name, "up")
        # nsenter and not `ip netns exec`, which hides the cgroups that slurmd looks for
        nodes = [
            SlurmNode(f"n{number}", f"10.78.0.{number}", ("nsenter", f"--net=/run/netns/{space}", "unshare", "--uts"))
            for number, space in enumerate(spaces, start=1)
        ]
        with _cluster(nodes, BRIDGE, 0, "OverSubscribe=NO") as variables:
            yield variables
    finally:
        for space in spaces:
            _remove_space(space)
        _ip("link", "del", bridge)


def _remove_left_over() -> None:
    """Removes networks of tests that were killed: a second bridge of the same address keeps nodes from the first."""
    names = [line.split()[0] for line in _ip("-br", "link").splitlines()]
    for name in names:
        found = re.fullmatch(r"rs(\d+)", name)
        if found and not psutil.pid_exists(int(found[1])):
            for space in _ip("netns", "list").split():
                if re.fullmatch(rf"{name}[ab]", space):
                    _remove_space(space)
            _ip("link", "del", name)


def _remove_space(space: str) -> None:
    for pid in _ip("netns", "pids", space).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    _ip("netns", "del", space)


@contextmanager
def _cluster(nodes: Sequence[SlurmNode], address: str, gpus: int, sharing: str) -> Iterator[dict[str, str]]:
    folder = Path(tempfile.mkdtemp(prefix="rankdeck-slurm-"))  # short: it holds a socket
    started: list[subprocess.Popen[bytes]] = []
    env = {**os.environ, "PATH": _path(), "SLURM_CONF": str(folder / "slurm.conf")}
    try:
        for name in ("state", *(f"spool-{node.name}" for node in nodes)):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(64))
        key.chmod(0o600)
        _write_settings(folder, nodes, address, gpus, sharing)
        munge = [f"--key-file={key}", f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid"]
        munge += [f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"]
        commands = [["munged", "-F", "--force", *munge], ["slurmctld", "-D"]]
        for node in nodes:
            daemon = ["slurmd", "-D", "-N", node.name]
            commands.append(
                [*node.enter, "sh", "-c", f"hostname {node.name} && exec {' '.join(daemon)}"] if node.enter else daemon
            )
        for command in commands:
            started.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            if command[0] == "munged":
                _wait(lambda: (folder / "munge.socket").exists(), "munged", folder)
        _wait(lambda: _are_idle(env, len(nodes)), "the nodes", folder)
        yield {"PATH": _path(), "SLURM_CONF": env["SLURM_CONF"]}
    finally:
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _write_settings(folder: Path, nodes: Sequence[SlurmNode], address: str, gpus: int, sharing: str) -> None:
    host = socket.gethostname().split(".")[0]
    lines = [
        _NODE.format(name=node.name, address=node.address, gpus=f"Gres=gpu:{gpus}" if gpus else "") for node in nodes
    ]
    text = _CONF.format(
        folder=folder,
        host=host,
        address=address,
        controller=_free_port(),
        node=_free_port(),
        nodes="\n".join(lines),
        sharing=sharing,
    )
    (folder / "slurm.conf").write_text(text, encoding="utf-8", newline="\n")
    for number in range(gpus):  # Slurm asks for a device; this one is /dev/null's
        os.mknod(folder / f"gpu{number}", _CHARACTER_DEVICE, os.makedev(1, 3))
    names = "".join(f"NodeName={node.name} Name=gpu File={folder}/gpu[0-{gpus - 1}]\n" for node in nodes if gpus)
    (folder / "gres.conf").write_text(names, encoding="utf-8", newline="\n")


def _are_idle(env: dict[str, str], count: int) -> bool:
    found = subprocess.run(
        ["sinfo", "-h", "-N", "-o", "%t"], env=env, capture_output=True, encoding="utf-8", timeout=30, check=False
    )
    return found.stdout.split() == ["idle"] * count


def _wait(reached: object, what: str, folder: Path) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not reached():  # type: ignore[operator]
        logs = "\n".join(path.read_text(errors="replace")[-1500:] for path in folder.glob("*.log"))
        assert time.monotonic() < deadline, f"{what} did not come\n{logs}"
        time.sleep(0.1)


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, encoding="utf-8", timeout=30, check=True).stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
