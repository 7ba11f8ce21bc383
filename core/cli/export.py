"""`rankdeck export`: a run for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.export import KINDS
from core.export.export import export_run
from core.formatting import percent
from core.run_folder.store import find_run


def export(arguments: argparse.Namespace, terminal: Terminal) -> int:
    store = find_run(chosen_runs_dir(arguments), arguments.run)

    def show(done: float) -> None:
        terminal.progress(f"{KINDS[arguments.to]}: {percent(done)}")

    made = export_run(
        store,
        arguments.to,
        Path(arguments.out) if arguments.out else None,
        checkpoint=arguments.checkpoint,
        overwrite=arguments.overwrite,
        trust_recipe=arguments.trust_recipe,
        dtype=arguments.dtype,
        progress=show,
    )
    if arguments.json:
        terminal.json({"kind": made.kind, "path": str(made.path), "details": list(made.details)})
        return 0
    terminal.say(f"Exported {store.dir.name} as {KINDS[made.kind]}: {made.path}")
    for line in made.details:
        terminal.say(f"  {line}")
    return 0
