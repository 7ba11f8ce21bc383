"""Exports a run as a launch file: the command that trains as it does, under another launcher."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

from core.config.distributed import DistributedConfig
from core.config.launch_kinds import LAUNCH_KINDS, SUFFIXES
from core.config.node_count import NodeCount
from core.files.atomic import explained, write_atomic
from core.files.destination import check_file_place, refused
from core.formatting import listed
from core.launch.command_line import to_command_line
from core.launch.environment import cards_by_uuid
from core.launch.launch_files import LaunchCommand, launch_file
from core.launch.nodes.key import make_key
from core.launch.slurm.batch_file import SlurmRequest
from core.paths import SDK_FOLDER, default_runs_dir
from core.run_folder.store import RunStore
from core.training_python import training_python

_FORMATS: Final = (".toml", ".yaml", ".yml", ".json")
_NOT_RUN: Final = ("env", "powershell", "distributed")


def default_launch_file(store: RunStore, kind: str) -> Path:
    """Where a launch file goes by default."""
    return store.dir / "exports" / f"{kind}{SUFFIXES[kind]}"


def export_launch_file(
    store: RunStore, kind: str, out: Path | None = None, *, overwrite: bool = False, slurm: SlurmRequest | None = None
) -> tuple[Path, str]:
    """Writes a launch file; returns its path, and a line of what it starts.

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
    path = (default_launch_file(store, kind) if out is None else out).expanduser().absolute()
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
    return path, _details(kind, command)


def launch_command(store: RunStore, slurm: SlurmRequest | None = None) -> LaunchCommand:
    """What a run's launch file starts; see `export_launch_file`.

    Raises:
        UsageError: The run never started.
    """
    config, state = store.config(), store.stored_state()
    devices = state.devices
    if not devices or not all(device.startswith(("cpu:", "GPU-", "MIG-", "AMD-")) for device in devices):
        raise refused(f"{store.dir.name} never started, so its devices are not known.", "Start it once.")
    count = NodeCount.read(config.nodes or "1")
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
        slurm=dataclasses.replace(asked, gpus_per_node=0),
    )


def _details(kind: str, command: LaunchCommand) -> str:
    each = f"{len(command.devices)} × {', '.join(command.devices)}"
    if kind == "sbatch" and command.slurm.max_nodes > 1:
        least, most = command.slurm.min_nodes, command.slurm.max_nodes
        return f"{LAUNCH_KINDS[kind]}: {most if least == most else f'{least} to {most}'} nodes, {each}"
    return each
