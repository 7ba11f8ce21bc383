"""The run of `rankdeck tune`, `bench` and `estimate`, from flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from core.cli.device_request import resolve_request
from core.cli.terminal import Terminal
from core.errors import PreflightError
from core.launch.command_line import request_from_arguments
from core.launch.resolved import ResolvedRun
from core.run_folder.store import list_runs


def refuse_beside_a_run(runs_dir: Path, do: str) -> None:
    """Refuse trials while a run trains; `do` is the first word of the next step.

    Raises:
        PreflightError: One trains.
    """
    live = [entry for entry in list_runs(runs_dir) if entry.state is not None and entry.state.is_live]
    if live:
        raise PreflightError(
            f"{live[0].path.name} is training. Trials would slow it down, and it would slow them down.",
            f"{do} when it has ended.",
        )


def checked_run(
    arguments: argparse.Namespace, terminal: Terminal, check: Callable[[ResolvedRun], object]
) -> ResolvedRun:
    """Resolve the run of the flags of `rankdeck train` on this machine, and print its notes.

    Raises:
        RankdeckError: `check`, which comes before the recipe, or a start of this run refuses it.
    """
    run, notes = resolve_request(request_from_arguments(arguments))
    check(run)
    run, recipe_notes = run.fitted()
    for note in (*notes, *run.device_notes, *recipe_notes):
        terminal.warn(note)
    return run
