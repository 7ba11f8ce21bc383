"""A Slurm cluster of one node, for one test: Debian's munged, slurmctld and slurmd in a folder of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PROGRAMS: Final = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
_LIMIT_S: Final = 60.0
_CONF: Final = """
ClusterName=rankdeck
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:4
"""


def why_not() -> str:
    """Why there can be no cluster here; empty where there can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if sys.platform != "linux" or missing:
        return f"needs Slurm: {', '.join(missing)} not installed"
    return "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "a cluster in a folder of its own needs root"


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@contextmanager
def cluster() -> Iterator[dict[str, str]]:
    """Runs one; yields the variables with which srun and sbatch find it."""
    folder = Path(tempfile.mkdtemp(prefix="rankdeck-slurm-"))  # short: it holds a socket
    started: list[subprocess.Popen[bytes]] = []
    env = {**os.environ, "PATH": _path(), "SLURM_CONF": str(folder / "slurm.conf")}
    try:
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(64))
        key.chmod(0o600)
        host = socket.gethostname().split(".")[0]
        text = _CONF.format(folder=folder, host=host, controller=_free_port(), node=_free_port())
        (folder / "slurm.conf").write_text(text, encoding="utf-8", newline="\n")
        munge = [f"--key-file={key}", f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid"]
        munge += [f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"]
        for command in (["munged", "-F", "--force", *munge], ["slurmctld", "-D"], ["slurmd", "-D", "-N", host]):
            started.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            if command[0] == "munged":
                _wait(lambda: (folder / "munge.socket").exists(), "munged", folder)
        _wait(lambda: _is_idle(env), "the node", folder)
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


def _is_idle(env: dict[str, str]) -> bool:
    found = subprocess.run(
        ["sinfo", "-h", "-o", "%t"], env=env, capture_output=True, encoding="utf-8", timeout=30, check=False
    )
    return found.stdout.strip() == "idle"


def _wait(reached: object, what: str, folder: Path) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not reached():  # type: ignore[operator]
        logs = "\n".join(path.read_text(errors="replace")[-1500:] for path in folder.glob("*.log"))
        assert time.monotonic() < deadline, f"{what} did not come\n{logs}"
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
