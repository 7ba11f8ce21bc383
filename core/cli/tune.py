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
from core.formatting import UNKNOWN, memory_size, rate, short_duration
from core.launch.resolved import ResolvedRun
from core.measure.ranks import CancelledError
from core.measure.trial import OUTCOMES
from core.measure.tune.choice import check_tunable, on_off
from core.measure.tune.search import Result
from core.measure.tune.tuned import Tuned
from core.measure.tune.tuner import SECONDS, Progress, Tell, find_room
from core.measure.tune.tuner import tune as find

_LEAST_S: Final = 10.0
_COLUMNS: Final = (
    *("MICRO-BATCH", "ACCUMULATION", "ALL-REDUCE", "CHECKPOINTING", "COMPILED"),
    *("NEEDS", "STEP", "SPEED", "RESULT"),
)


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
        terminal.table(_COLUMNS, [_row(result) for result in found.results])
    for result in found.results:
        if not result.is_measured:
            terminal.say(f"Micro-batch {result.choice.micro_batch}: {result.cause}")
    terminal.say(found.sentence)
    if found.flags:
        terminal.say(f"  {' '.join(found.flags)}")
    for offer in found.offers:
        terminal.say(offer.text)


def _row(result: Result) -> tuple[str, ...]:
    choice, shown = result.choice, result.is_measured
    exchange = " → ".join(dict.fromkeys(filter(None, (choice.exchange, result.exchange))))
    return (
        str(choice.micro_batch),
        str(choice.accumulation),
        exchange or UNKNOWN,
        on_off(choice.checkpointing),
        on_off(choice.compiles),
        memory_size(result.need_bytes),
        short_duration(result.step_s) if shown else UNKNOWN,
        rate(result.samples_per_s, "samples/s") if shown else UNKNOWN,
        OUTCOMES[result.outcome],
    )
