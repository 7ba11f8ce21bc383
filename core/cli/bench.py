"""`rankdeck bench`: scaling over devices, all-reduce, memory over time, accumulation; a table and pictures."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from core.cli.follow import INTERRUPTED_TWICE
from core.cli.interrupts import counted_interrupts
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.cli.trial_run import checked_run, refuse_beside_a_run
from core.errors import RankdeckError, UsageError
from core.measure.bench.charts import charts_of
from core.measure.bench.contenders import Kind, find_contenders, parse_counts
from core.measure.bench.folder import BenchFolder, busy_share, describe
from core.measure.bench.rows import Bench
from core.measure.bench.runner import Progress, run_bench
from core.measure.bench.summary import NO_PICTURES, heading, sentences
from core.measure.bench.table import table_of

MOST_TURNS: Final = 1000
_LEAST_S: Final = 0.1
_MOST_S: Final = 86_400.0


def bench(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Measures; exit code 1 if a contender failed, 130 after Ctrl+C, with what was measured by then."""
    kind = Kind(arguments.kind)
    turns, seconds = _numbers(arguments)
    refuse_beside_a_run(chosen_runs_dir(arguments), "Measure")
    counts = parse_counts(arguments.counts) if arguments.counts is not None else ()
    run = checked_run(arguments, terminal, lambda found: find_contenders(kind, found, counts))
    devices = sorted({contender.devices for contender in find_contenders(kind, run, counts)})
    environment = describe(kind, run, devices, busy_share())
    folder = None if arguments.out is None else BenchFolder.make(Path(arguments.out).expanduser(), environment)

    def on_progress(progress: Progress) -> None:
        terminal.progress(f"{progress.doing} ({100 * progress.share:.0f} %)")
        if folder is not None:
            folder.keep(progress.bench)

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
        _show(terminal, measured, environment, as_json=arguments.json)  # before files, which a full disk may refuse
        if folder is not None:
            no_pictures = folder.write(measured, lambda: interrupts.count > 1)
            terminal.say(f"Written to {folder.path}.")
            if no_pictures:
                terminal.say(f"{NO_PICTURES}: {no_pictures}")
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


def _show(terminal: Terminal, measured: Bench, environment: dict[str, Any], *, as_json: bool) -> None:
    table = table_of(measured)
    if as_json:
        terminal.json(
            {
                "kind": measured.kind.value,
                "is_stopped": measured.is_stopped,
                "environment": environment,
                "rows": [dict(row) for row in table.rows],
                "sentences": sentences(measured),
                "charts": [asdict(chart) for chart in charts_of(measured)],
            }
        )
        return
    terminal.say(heading(measured))
    terminal.table([column.title.upper() for column in table.shown], table.cells)
    for sentence in sentences(measured):
        terminal.say(sentence)


def _refuse_nothing(measured: Bench) -> None:
    """Raises why nothing was measured, where a failure and not the person is the reason."""
    failures = [one.failure for one in measured.measured if one.failure is not None]
    if failures and not measured.has_figures:
        step = "Train a few steps with the same flags: rankdeck train … --steps 3"
        if failures[0].outcome == "too_large":
            step = "Choose a smaller micro-batch or model; rankdeck estimate with the same flags says what helps."
        raise RankdeckError(failures[0].cause, step, title="Nothing was measured")
