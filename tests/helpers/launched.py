"""Launchers in tests: a real torchrun, mpirun or srun that starts `rankdeck train`, and all that it has started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from core.config.config_file import to_toml
from core.paths import data_folder
from tests.helpers.host_fixture import FakeRun

LIMIT_S: Final = 90.0
ROOT: Final = Path(__file__).resolve().parents[2]
MPI_VARIABLES: Final = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


def torchrun(processes: int, *flags: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}", *flags]


def train(run: FakeRun, *flags: str) -> list[str]:
    """`python -m core train` of a fake run, without its devices: those are the launcher's to give."""
    run.run_dir.mkdir(parents=True, exist_ok=True)
    run.behave()
    config = run.run_dir.parent.parent / "asked.toml"
    config.write_text(to_toml(run.config.replace(devices=("auto",))), encoding="utf-8", newline="\n")
    return ["-m", "core", "train", "--config", str(config), "--run-dir", str(run.run_dir), *flags]


class Job:
    """A launcher and its processes.

    Args:
        command: The launcher's.
        folder: Where it runs, and its output goes.
        env: Further variables.
    """

    def __init__(self, command: Sequence[str], folder: Path, env: dict[str, str] | None = None) -> None:
        self._output = folder / "launcher.log"
        path = os.pathsep.join([str(ROOT), str(ROOT / "workers" / "sdk")])
        with self._output.open("ab") as log:
            self.process = psutil.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path, **(env or {})},
            )
        self._seen: dict[psutil.Process, None] = {}

    @property
    def output(self) -> str:
        return self._output.read_text(encoding="utf-8", errors="replace")

    def processes(self) -> list[psutil.Process]:
        """Those that the launcher started, by rank, as far as they say which they are."""
        found: dict[int, psutil.Process] = {}
        for child in self.process.children():
            try:
                variables = child.environ()
            except psutil.Error:
                continue
            rank = variables.get("RANK") or variables.get("OMPI_COMM_WORLD_RANK") or variables.get("SLURM_PROCID")
            if rank is not None:
                found[int(rank)] = child
        return [found[rank] for rank in sorted(found)]

    def note(self) -> Job:
        self._seen.update(dict.fromkeys(self.process.children(recursive=True)))
        return self

    def leftovers(self) -> list[psutil.Process]:
        _, alive = psutil.wait_procs(list(self._seen), timeout=LIMIT_S)
        return [process for process in alive if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]

    def end(self) -> int:
        code: int = self.process.wait(LIMIT_S)
        return code

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        for process in [*self._seen, *_family(self.process)]:
            try:
                process.kill()
            except psutil.Error:
                continue
        self.process.wait(LIMIT_S)


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [*process.children(recursive=True), process]
    except psutil.Error:
        return []


def wait(reached: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not reached():
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.05)


def meetings() -> list[Path]:
    return sorted(path for path in (data_folder() / "launched").rglob("*") if path.is_file())


def has(program: str) -> bool:
    return shutil.which(program) is not None
