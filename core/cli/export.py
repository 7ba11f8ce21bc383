"""`rankdeck export`: a run for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.config.distributed import DistributedConfig
from core.export import KINDS
from core.export.destination import check_file_place, refused
from core.export.export import Exported, export_run
from core.files.atomic import explained, write_atomic
from core.formatting import percent
from core.launch.command_line import to_command_line
from core.launch.environment import cards_by_uuid
from core.launch.launch_files import LAUNCH_KINDS, SUFFIXES, LaunchCommand, launch_file
from core.paths import SDK_FOLDER
from core.run_folder.store import RunStore, find_run
from core.training_python import training_python


def export(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Exports a run and says where it is; Ctrl+C leaves nothing behind."""
    store = find_run(chosen_runs_dir(arguments), arguments.run)
    if arguments.to in LAUNCH_KINDS:
        made = _launch_file(store, arguments)
        return _report(made, LAUNCH_KINDS[made.kind], store, arguments, terminal)

    def show(done: float) -> None:
        terminal.progress(f"{KINDS[arguments.to]}: {percent(done)}")

    made = export_run(
        store,
        arguments.to,
        Path(arguments.out) if arguments.out else None,
        checkpoint=arguments.checkpoint,
        allow_diverged=arguments.allow_diverged,
        overwrite=arguments.overwrite,
        trust_recipe=arguments.trust_recipe,
        progress=show,
    )
    return _report(made, KINDS[made.kind], store, arguments, terminal)


def _report(made: Exported, title: str, store: RunStore, arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.json:
        terminal.json({"kind": made.kind, "path": str(made.path), "details": list(made.details)})
        return 0
    terminal.say(f"Exported {store.dir.name} as {title}: {made.path}")
    for line in made.details:
        terminal.say(f"  {line}")
    return 0


def _launch_file(store: RunStore, arguments: argparse.Namespace) -> Exported:
    """Writes the file with which another launcher trains as this run does."""
    kind: str = arguments.to
    if arguments.checkpoint is not None:
        raise refused(f"A checkpoint holds weights, and a {LAUNCH_KINDS[kind]} holds none.", "Leave --checkpoint out.")
    place = store.dir / "exports" / f"{kind}{SUFFIXES[kind]}" if arguments.out is None else Path(arguments.out)
    place = place.expanduser().absolute()
    check_file_place(place, overwrite=arguments.overwrite or arguments.out is None)
    with explained(f"{place.parent} could not be made"):
        place.parent.mkdir(parents=True, exist_ok=True)
    command = _launch_command(store)
    write_atomic(place, launch_file(kind, command), mode=None if kind in ("env", "powershell") else 0o755)
    return Exported(kind, place, (f"{command.place.world_size} × {', '.join(command.devices)}",))


def _launch_command(store: RunStore) -> LaunchCommand:
    config, state = store.config(), store.stored_state()
    devices = state.devices
    if not devices or not all(device.startswith(("cpu:", "GPU-", "MIG-", "AMD-")) for device in devices):
        raise refused(f"{store.dir.name} never started, so its devices are not known.", "Start it once.")
    world = len(devices)
    place = DistributedConfig(world, devices_per_node=world).with_settings(config)
    return LaunchCommand(
        name=store.dir.name,
        python=str(training_python().executable),
        python_path=str(SDK_FOLDER) if (SDK_FOLDER / "rankdeck").is_dir() else "",
        train=to_command_line(config.replace(devices=("auto",), nodes=None))[2:],
        devices=devices,
        variables=cards_by_uuid([device for device in devices if not device.startswith("cpu:")]),
        place=place,
    )
