"""`rankdeck compare`: runs beside each other."""

from __future__ import annotations

import argparse

from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.compare.comparison import compare_runs
from core.run_folder.store import find_run


def compare(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Prints what runs did and what differs between them, as a table, JSON or CSV."""
    runs_dir = chosen_runs_dir(arguments)
    found = compare_runs([find_run(runs_dir, text) for text in arguments.runs])
    if arguments.json:
        terminal.json(found.as_dict(all_rows=arguments.all))
    elif arguments.csv:
        for line in found.as_csv(all_rows=arguments.all).rstrip("\n").split("\n"):
            terminal.data(line)
    else:
        terminal.text(found.as_text(all_rows=arguments.all, width=terminal.width).rstrip("\n"))
        for note in found.notes:
            terminal.say(note)
        if found.same_text and not arguments.all:
            terminal.say(f"{found.same_text} Show them too: --all")
    return 0
