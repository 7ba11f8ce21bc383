"""`rankdeck bench`: scaling over devices, and all-reduce; a table, or JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from core.cli.follow import INTERRUPTED_TWICE
from core.cli.interrupts import counted_interrupts
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.cli.trial_run import checked_run, refuse_beside_a_run
from core.errors import RankdeckError, UsageError
from core.files.atomic import explained, write_atomic
from core.measure.bench.contenders import Kind, find_contenders, parse_counts
from core.measure.bench.report import Bench, columns_of, heading, rows_of, sentences
from core.measure.bench.runner import run_bench

MOST_TURNS: Final = 1000
_LEAST_S: Final = 0.1
_MOST_S: Final = 86_400.0


def bench(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Measure; exit code 1 if a contender failed, 130 after Ctrl+C, with the figures measured by then."""
    kind = Kind(arguments.kind)
    turns, seconds = _numbers(arguments)
    folder = None if arguments.out is None else Path(arguments.out).expanduser()
    if folder is not None:
        with explained(f"{folder} could not be made"):  # now, not after a minute
            folder.mkdir(parents=True, exist_ok=True)
    refuse_beside_a_run(chosen_runs_dir(arguments), "Measure")
    counts = parse_counts(arguments.counts) if arguments.counts is not None else ()
    run = checked_run(arguments, terminal, lambda found: find_contenders(kind, found, counts))

    def on_progress(doing: str, share: float) -> None:
        terminal.progress(f"{doing} ({100 * share:.0f} %)")

    with counted_interrupts() as interrupts:
        measured = run_bench(
            kind,
            run,
            counts,
            turns=turns,
            seconds=seconds,
            on_progress=on_progress,
            cancelled=lambda: interrupts.count > 0,
        )
    terminal.end_progress()
    show(terminal, measured, folder, as_json=arguments.json)
    _refuse_nothing(measured)
    if interrupts.count:
        return INTERRUPTED_TWICE
    return int(any(one.failure is not None for one in measured.measured))


def _numbers(arguments: argparse.Namespace) -> tuple[int | None, float | None]:
    turns, seconds = arguments.turns, arguments.seconds
    if turns is not None and not 1 <= turns <= MOST_TURNS:
        raise UsageError(f"--turns is {turns}.", f"Give 1 to {MOST_TURNS:,}.")
    if seconds is not None and not _LEAST_S <= seconds <= _MOST_S:
        raise UsageError(f"--seconds is {seconds:g}.", f"Give {_LEAST_S:g} to {_MOST_S:,.0f}.")
    return turns, seconds


def show(terminal: Terminal, measured: Bench, folder: Path | None, *, as_json: bool) -> None:
    """Print a table or JSON, and write the JSON to a folder."""
    rows, kind = rows_of(measured), measured.kind.value
    document = {"kind": kind, "is_stopped": measured.is_stopped, "rows": rows, "sentences": sentences(measured)}
    if folder is not None:
        write_atomic(folder / f"bench-{kind}.json", json.dumps(document, indent=2))
    if as_json:
        terminal.json(document)
        return
    columns = columns_of(measured.kind)
    terminal.say(heading(measured))
    terminal.table(
        [column.title.upper() for column in columns], [[column.text(row) for column in columns] for row in rows]
    )
    for sentence in sentences(measured):
        terminal.say(sentence)


def _refuse_nothing(measured: Bench) -> None:
    """Raise the first failure where nothing was measured."""
    failures = [one.failure for one in measured.measured if one.failure is not None]
    if failures and not any(one.turns for one in measured.measured):
        step = "Train a few steps with the same flags: rankdeck train … --steps 3"
        if failures[0].outcome == "too_large":
            step = "Choose a smaller micro-batch or model; rankdeck estimate with the same flags says what helps."
        raise RankdeckError(failures[0].cause, step, title="Nothing was measured")
