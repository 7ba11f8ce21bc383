"""`rankdeck export`: a run for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.config.launch_kinds import LAUNCH_KINDS
from core.config.node_count import NodeCount
from core.export import KINDS
from core.export.export import Exported, export_run
from core.files.destination import refused
from core.formatting import percent
from core.launch.launch_files import export_launch_file
from core.launch.nodes.job import AUTO_NIC
from core.launch.slurm.batch_file import SlurmRequest
from core.run_folder.store import RunStore, find_run


def export(arguments: argparse.Namespace, terminal: Terminal) -> int:
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
        dtype=arguments.dtype,
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
    kind: str = arguments.to
    if arguments.checkpoint is not None:
        raise refused(f"A checkpoint holds weights, and a {LAUNCH_KINDS[kind]} holds none.", "Leave --checkpoint out.")
    slurm = None
    if arguments.nodes is not None:
        if kind != "sbatch":
            raise refused(f"A {LAUNCH_KINDS[kind]} is for one machine.", "Leave --nodes out, or choose --to sbatch.")
        count = NodeCount.read(arguments.nodes)
        slurm = SlurmRequest(count.least, count.most, nic=arguments.nic or AUTO_NIC)
    elif arguments.nic is not None:
        raise refused("--nic is given without --nodes.", "Say for how many nodes the file is: --nodes 2")
    out = Path(arguments.out) if arguments.out else None
    path, details = export_launch_file(store, kind, out, overwrite=arguments.overwrite, slurm=slurm)
    return Exported(kind, path, details)
