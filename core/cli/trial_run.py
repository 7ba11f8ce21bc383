"""The run that trials are made of, from flags; shared by `rankdeck tune` and `rankdeck bench`."""

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
    """Refuses trials while a run trains.

    Args:
        runs_dir: The folder of runs.
        do: What is refused, as the first word of the next step.

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
    """What the flags describe, decided on this machine; says what a person should know about it.

    Args:
        arguments: Those of `rankdeck train`.
        terminal: Where the notes go.
        check: Refuses runs of which no trials can be made, before the recipe is asked.

    Raises:
        RankdeckError: What `check` raises, and what a start of this run would.
    """
    run, notes = resolve_request(request_from_arguments(arguments))
    check(run)
    run, recipe_notes = run.fitted()
    for note in (*notes, *run.device_notes, *recipe_notes):
        terminal.warn(note)
    return run
