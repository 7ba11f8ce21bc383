"""Launch files: a run's command under another launcher, as files that run as they are. Pure.

They are written from a run's settings and a `DistributedConfig`; nothing in them is looked up when they run but the
interpreter, whose path they name.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core.config.distributed import DistributedConfig
from core.launch.environment import CARDS
from core.launch.slurm.batch_file import BatchJob, SlurmRequest, batch_file


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """What a launch file starts.

    Attributes:
        name: The run's.
        python: The interpreter.
        python_path: Folders for `PYTHONPATH`, where `rankdeck` is not installed for it.
        train: The flags of `rankdeck train`, without its devices.
        devices: Those of ``--devices``, for Rankdeck's own launch and for CPU devices.
        variables: Further variables, such as the GPUs that are to be visible.
        place: The first process's.
        runs_dir: The folder of runs, for a batch file.
        slurm: What a batch file asks for.
    """

    name: str
    python: str
    python_path: str
    train: Sequence[str]
    devices: Sequence[str]
    variables: Mapping[str, str]
    place: DistributedConfig
    runs_dir: str = ""
    slurm: SlurmRequest = field(default_factory=SlurmRequest)


def launch_file(kind: str, command: LaunchCommand) -> str:
    """The text of a file, for UTF-8; `kind` is one of `LAUNCH_KINDS`."""
    return _WRITERS[kind](command)


def _torchrun(command: LaunchCommand) -> str:
    flags = [f"--nproc-per-node={command.place.devices_per_node}"]
    return _script(command, ["-m", "torch.distributed.run", *flags])


def _launch(command: LaunchCommand) -> str:
    flags = ["--use-env", f"--nproc-per-node={command.place.devices_per_node}"]
    return _script(command, ["-m", "torch.distributed.launch", *flags])


def _script(command: LaunchCommand, launcher: Sequence[str]) -> str:
    argv = [command.python, *launcher, "-m", "rankdeck", "train", *_given_by_launcher(command)]
    return _lines("#!/bin/sh", *_head(command), *_exports(_variables(command)), f'exec {_sh(argv)} "$@"')


def _sbatch(command: LaunchCommand) -> str:
    on_cpu = _on_cpu(command)
    # The job's GPUs are Slurm's to choose: those of this machine may be other ones there.
    variables = {name: value for name, value in command.variables.items() if name not in CARDS}
    ranks = command.place.devices_per_node
    several = command.slurm.max_nodes > 1
    asked = dataclasses.replace(
        command.slurm,
        gpus_per_node=0 if on_cpu else ranks,
        cpus_per_task=ranks if on_cpu and several else 0,
    )
    return batch_file(
        BatchJob(
            name=command.name,
            python=command.python,
            python_path=command.python_path,
            train=command.train,
            devices=command.devices if on_cpu else (),
            run_dir=str(Path(command.runs_dir) / command.name),
            slurm=asked.check(),
            ranks=0 if several else ranks,
            folder_per_job=True,
            variables=variables,
        )
    )


def _env(command: LaunchCommand) -> str:
    """For processes that are started by hand, or by a launcher that Rankdeck does not know."""
    place = command.place.replace(launch_method="env", job=command.place.job or command.name)
    shared = {name: value for name, value in place.to_env().items() if name not in ("RANK", "LOCAL_RANK")}
    train = _sh([command.python, "-m", "rankdeck", "train", *_given_by_launcher(command)])
    ranks = " ".join(map(str, range(place.devices_per_node)))
    return _lines(
        *_head(command),
        "# Read it into a shell (. FILE), then start one process for each rank:",
        f"#   for rank in {ranks}; do RANK=$rank LOCAL_RANK=$rank {train} & done; wait",
        *_exports({**_variables(command), **shared}),
    )


def _powershell(command: LaunchCommand) -> str:
    """Rankdeck starts the ranks: torchrun needs libuv, which PyTorch for Windows lacks.

    Windows' own PowerShell 5.1 reads a file without a byte order mark in the system's code page.
    """
    argv = ["-m", "rankdeck", "train", *command.train, "--devices", ",".join(command.devices)]
    return "\ufeff" + _lines(
        *_head(command),
        *(f"$env:{name} = {_ps(value)}" for name, value in _variables(command).items()),
        "$PSNativeCommandArgumentPassing = 'Legacy'",
        f"& {_ps(command.python)} {' '.join(map(_ps_argument, argv))} @args",
        "exit $LASTEXITCODE",
    )


_WRITERS: Final[Mapping[str, Callable[[LaunchCommand], str]]] = {
    "torchrun": _torchrun,
    "launch": _launch,
    "sbatch": _sbatch,
    "env": _env,
    "powershell": _powershell,
    "distributed": lambda command: command.place.to_text(".toml"),
}


def _head(command: LaunchCommand) -> list[str]:
    ranks = command.place.devices_per_node
    return [f"# Trains as the Rankdeck run {command.name}: {ranks} process{'es' if ranks > 1 else ''} on one machine."]


def _variables(command: LaunchCommand) -> dict[str, str]:
    path = {"PYTHONPATH": command.python_path} if command.python_path else {}
    return {**path, **command.variables}


def _given_by_launcher(command: LaunchCommand) -> list[str]:
    """The flags of a process that a launcher starts; GPUs are given by it, CPU devices are named."""
    return [*command.train, *(["--devices", ",".join(command.devices)] if _on_cpu(command) else [])]


def _on_cpu(command: LaunchCommand) -> bool:
    return all(device.startswith("cpu") for device in command.devices)


def _exports(variables: Mapping[str, str]) -> list[str]:
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]


def _sh(argv: Sequence[str]) -> str:
    return shlex.join(argv)


def _ps(text: str) -> str:
    """`text` as PowerShell's literal. Typographic quotation marks end one too, as the plain one does."""
    return "'" + re.sub("(['\u2018-\u201b])", r"\1\1", text) + "'"


def _ps_argument(text: str) -> str:
    """`text` as an argument of a program.

    PowerShell before 7.3 (later ones: "Legacy") only joins arguments, with quotation marks around those with blanks
    that have none: an empty one is lost, and one with a quotation mark in it is torn.
    https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_parsing
    """
    return _ps(subprocess.list2cmdline([text]))


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"
