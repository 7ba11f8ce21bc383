"""Launch files: a run's command under another launcher, as files that run as they are.

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
from core.config.launch_kinds import LAUNCH_KINDS, SUFFIXES
from core.config.node_count import NodeCount
from core.files.atomic import explained, write_atomic
from core.files.destination import check_file_place, refused
from core.formatting import listed
from core.launch.command_line import to_command_line
from core.launch.environment import CARDS, cards_by_uuid
from core.launch.nodes.key import make_key
from core.launch.slurm.batch_file import BatchJob, SlurmRequest, batch_file, comment
from core.paths import SDK_FOLDER, default_runs_dir
from core.recipes.outside_code import outside_code
from core.run_folder.store import RunStore
from core.training_python import training_python

_FORMATS: Final = (".toml", ".yaml", ".yml", ".json")
_NOT_RUN: Final = ("env", "powershell", "distributed")
_NOT_STARTED_HERE: Final = "The run was not started on this machine. Read what it names before you start the file."


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """The launch that a file describes.

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
        warnings: What the settings name that was never started on this machine, a sentence each.
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
    warnings: Sequence[str] = ()


def export_launch_file(
    store: RunStore, kind: str, out: Path | None = None, *, overwrite: bool = False, slurm: SlurmRequest | None = None
) -> tuple[Path, tuple[str, ...]]:
    """Writes a launch file; returns its path, and lines of what it starts.

    Args:
        store: The run.
        kind: One of `LAUNCH_KINDS`.
        out: The file; None: the default one, which is replaced.
        overwrite: Replace a file that is there.
        slurm: What a batch file asks for; None: as many nodes as the run's settings say.

    Raises:
        UsageError: The run never started, or the file is there.
        PreflightError: It cannot be written.
    """
    default = store.dir / "exports" / f"{kind}{SUFFIXES[kind]}"
    path = (default if out is None else out).expanduser().absolute()
    check_file_place(path, overwrite=overwrite or out is None)
    command = launch_command(store, slurm)
    text = launch_file(kind, command)
    if kind == "distributed":
        if path.suffix.lower() not in _FORMATS:
            raise refused(f"{path.name} is none of {listed(_FORMATS)}.", "Choose one of these endings.")
        text = command.place.to_text(path.suffix)
    if kind == "sbatch" and command.slurm.max_nodes > 1:
        make_key()  # all nodes read it from the home folder that they share
    with explained(f"{path.parent} could not be made"):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text, mode=None if kind in _NOT_RUN else 0o755)
    return path, (_details(kind, command), *(command.warnings if kind != "distributed" else ()))


def launch_command(store: RunStore, slurm: SlurmRequest | None = None) -> LaunchCommand:
    """The launch of a run's file; see `export_launch_file`.

    Raises:
        UsageError: The run never started.
    """
    config, state = store.config(), store.stored_state()
    devices = state.devices
    if not devices or not all(device.startswith(("cpu:", "GPU-", "MIG-", "AMD-")) for device in devices):
        raise refused(f"{store.dir.name} never started, so its devices are not known.", "Start it once.")
    count = NodeCount.read(config.nodes or "1")
    code = outside_code(config)
    asked = slurm or SlurmRequest(count.least, count.most)
    if asked.max_nodes > 1 and count.is_several:
        devices = devices[: max(1, len(devices) // count.most)]  # those of one of its machines
    return LaunchCommand(
        name=store.dir.name,
        python=str(training_python().executable),
        python_path=str(SDK_FOLDER) if (SDK_FOLDER / "rankdeck").is_dir() else "",
        train=to_command_line(config.replace(devices=("auto",), nodes=None))[2:],
        devices=devices,
        variables=cards_by_uuid([device for device in devices if not device.startswith("cpu:")]),
        place=DistributedConfig(len(devices), devices_per_node=len(devices)).with_settings(config),
        runs_dir=str(default_runs_dir()),
        slurm=asked,
        warnings=() if code is None or code.is_known else (_NOT_STARTED_HERE, *code.lines),
    )


def _details(kind: str, command: LaunchCommand) -> str:
    each = f"{len(command.devices)} × {', '.join(command.devices)}"
    if kind == "sbatch" and command.slurm.max_nodes > 1:
        least, most = command.slurm.min_nodes, command.slurm.max_nodes
        return f"{LAUNCH_KINDS[kind]}: {most if least == most else f'{least} to {most}'} nodes, {each}"
    return each


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
    return _lines("#!/bin/sh", *_head(command), *_exports(_variables(command)), f'exec {shlex.join(argv)} "$@"')


def _sbatch(command: LaunchCommand) -> str:
    on_cpu = _on_cpu(command)
    # The job's GPUs are Slurm's to choose: those of this machine may be other ones there.
    variables = {name: value for name, value in command.variables.items() if name not in CARDS}
    ranks = command.place.devices_per_node
    gpus, cpus = (0, ranks) if on_cpu else (ranks, 0)
    return batch_file(
        BatchJob(
            name=command.name,
            python=command.python,
            python_path=command.python_path,
            train=command.train,
            devices=command.devices if on_cpu else (),
            run_dir=str(Path(command.runs_dir) / command.name),
            slurm=dataclasses.replace(command.slurm, gpus_per_node=gpus, cpus_per_task=cpus).check(),
            folder_per_job=True,
            variables=variables,
            notes=command.warnings,
        )
    )


def _env(command: LaunchCommand) -> str:
    """For processes that are started by hand, or by a launcher that Rankdeck does not know."""
    place = command.place.replace(launch_method="env", job=command.place.job or command.name)
    shared = {name: value for name, value in place.to_env().items() if name not in ("RANK", "LOCAL_RANK")}
    train = shlex.join([command.python, "-m", "rankdeck", "train", *_given_by_launcher(command)])
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
    text = f"Trains as the Rankdeck run {command.name}: {ranks} process{'es' if ranks > 1 else ''} on one machine."
    return [comment(text), *map(comment, command.warnings)]


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
