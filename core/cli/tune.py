"""`rankdeck tune`: tries settings with real steps on all devices, and says with which a run trains fastest."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final

from core.cli.follow import INTERRUPTED_TWICE
from core.cli.interrupts import counted_interrupts
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.cli.trial_run import checked_run, refuse_beside_a_run
from core.errors import UsageError
from core.launch.resolved import ResolvedRun
from core.measure.ranks import CancelledError
from core.measure.tune.choice import check_tunable
from core.measure.tune.tuned import COLUMNS, Tuned, trial_cells
from core.measure.tune.tuner import SECONDS, Progress, Tell, find_room
from core.measure.tune.tuner import tune as find

_LEAST_S: Final = 10.0


def tune(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Tunes the run that the flags describe; exit code 130 after Ctrl+C, with what was found by then."""
    seconds = SECONDS if arguments.seconds is None else arguments.seconds
    if not _LEAST_S <= seconds < 1e6:
        raise UsageError(f"--seconds is {seconds:g}.", f"Give {_LEAST_S:g} or more.")
    runs_dir = chosen_runs_dir(arguments)
    refuse_beside_a_run(runs_dir, "Tune")
    run = checked_run(arguments, terminal, check_tunable)

    def on_progress(progress: Progress) -> None:
        terminal.progress(f"{progress.doing} ({100 * progress.share:.0f} % of the time)")

    with counted_interrupts() as interrupts:
        found = _found(run, runs_dir, seconds, on_progress, lambda: interrupts.count > 0)
    terminal.end_progress()
    if arguments.json:
        terminal.json(found.as_dict())
    else:
        _show(terminal, found)
    return INTERRUPTED_TWICE if interrupts.count else 0


def _found(run: ResolvedRun, runs_dir: Path, seconds: float, on_progress: Tell, cancelled: Callable[[], bool]) -> Tuned:
    try:
        room = find_room(run, runs_dir, on_progress=on_progress, cancelled=cancelled)
    except CancelledError:
        return Tuned(run, (), is_stopped=True)
    return find(run, room, seconds=seconds, on_progress=on_progress, cancelled=cancelled)


def _show(terminal: Terminal, found: Tuned) -> None:
    run = found.run
    terminal.say(f"{run.recipe.title}, {run.mode.label} on {run.world_size} devices, global batch {run.batch.global_}")
    if found.results:
        rows = [trial_cells(result, is_best=result is found.best) for result in found.results]
        terminal.table([title.upper() for title in COLUMNS], rows)
    for result in found.results:
        if not result.is_measured:
            terminal.say(f"Micro-batch {result.choice.micro_batch}: {result.cause}")
    terminal.say(found.sentence)
    if found.flags:
        terminal.say(f"  {' '.join(found.flags)}")
