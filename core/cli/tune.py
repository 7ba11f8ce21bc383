"""`rankdeck tune`: tries micro-batches with real steps on all devices, and shows the fastest one."""

from __future__ import annotations

import argparse
from typing import Final

from core.cli.follow import INTERRUPTED_TWICE
from core.cli.interrupts import counted_interrupts
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.cli.trial_run import checked_run, refuse_beside_a_run
from core.errors import UsageError
from core.measure.tune.tuned import COLUMNS, Tuned, check_tunable
from core.measure.tune.tuner import SECONDS, Progress
from core.measure.tune.tuner import tune as find

_LEAST_S: Final = 10.0


def tune(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Tune the run that the flags describe; exit code 130 after Ctrl+C, with the trials made by then."""
    seconds = SECONDS if arguments.seconds is None else arguments.seconds
    if not _LEAST_S <= seconds < 1e6:
        raise UsageError(f"--seconds is {seconds:g}.", f"Give {_LEAST_S:g} or more.")
    refuse_beside_a_run(chosen_runs_dir(arguments), "Tune")
    run = checked_run(arguments, terminal, check_tunable)

    def on_progress(progress: Progress) -> None:
        terminal.progress(f"{progress.doing} ({100 * progress.share:.0f} % of the time)")

    with counted_interrupts() as interrupts:
        found = find(run, seconds=seconds, on_progress=on_progress, cancelled=lambda: interrupts.count > 0)
    terminal.end_progress()
    if arguments.json:
        terminal.json(found.as_dict())
    else:
        _show(terminal, found)
    return INTERRUPTED_TWICE if interrupts.count else 0


def _show(terminal: Terminal, found: Tuned) -> None:
    run = found.run
    terminal.say(f"{run.recipe.title}, {run.mode.label} on {run.world_size} devices, global batch {run.batch.global_}")
    if found.results:
        best = found.best
        rows = [result.cells(is_best=result is best) for result in found.results]
        terminal.table([title.upper() for title in COLUMNS], rows)
    for result in found.results:
        if not result.is_measured:
            terminal.say(f"Micro-batch {result.micro_batch}: {result.cause}")
    terminal.say(found.sentence)
    if found.flags:
        terminal.say(f"  {' '.join(found.flags)}")
