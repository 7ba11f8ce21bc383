"""`rankdeck bench`: scaling over devices, all-reduce, memory over time, accumulation; a table, a page and pictures."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from core.bench.charts import charts_of
from core.bench.contenders import find_contenders, parse_counts
from core.bench.environment import busy_share, describe, machine_facts
from core.bench.folder import PAGE, BenchFolder
from core.bench.kinds import Kind
from core.bench.page import NO_PICTURES, heading
from core.bench.result import Bench
from core.bench.runner import Progress, run_bench
from core.bench.summary import sentences
from core.bench.table import table_of
from core.cli.follow import INTERRUPTED_TWICE
from core.cli.interrupts import counted_interrupts
from core.cli.node_flags import check_nodes_arguments, check_recipe_on_nodes
from core.cli.nodes import Started
from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.cli.trial_run import checked_run, own_devices, refuse_beside_a_run
from core.errors import RankdeckError, UsageError
from core.launch.command_line import request_from_arguments
from core.launch.nodes.request import NodesRequest
from core.launch.resolved import ResolvedRun
from core.trials.machines import Machines
from core.trials.nodes import TrialNodes

MOST_TURNS: Final = 1000
_LEAST_S: Final = 0.1
_MOST_S: Final = 86_400.0


def bench(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Measures; exit code 1 if a contender failed, 130 after Ctrl+C, with what was measured by then."""
    _numbers(arguments)
    runs_dir = chosen_runs_dir(arguments)
    refuse_beside_a_run(runs_dir, "Measure")
    request = request_from_arguments(arguments)
    check_nodes_arguments(arguments, request.config.nodes)
    nodes = NodesRequest.from_values(request.config.nodes, request.meeting)
    if nodes is None:
        return _measure(arguments, terminal)
    check_recipe_on_nodes(request.recipe)
    from core.cli.bench_nodes import bench_on_nodes  # here: one machine needs none of it

    started = Started(nodes, terminal, runs_dir, own_devices(request))
    return bench_on_nodes(started, lambda found: _measure(arguments, terminal, found))


def _measure(arguments: argparse.Namespace, terminal: Terminal, nodes: TrialNodes | None = None) -> int:
    """On this machine, or on several, of which this is the first."""
    kind = Kind(arguments.kind)
    turns, seconds = _numbers(arguments)
    counts = parse_counts(arguments.counts) if arguments.counts is not None else ()
    machines = None if nodes is None else nodes.machines
    run = checked_run(arguments, lambda found: find_contenders(kind, found, counts), machines, max(counts, default=0))
    environment = _environment(kind, run, counts, machines)
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
            nodes=nodes,
        )
        terminal.end_progress()
        _show(terminal, measured, environment, as_json=arguments.json)  # before files, which a full disk may refuse
        if folder is not None:
            no_pictures = folder.write(measured, lambda: interrupts.count > 1)
            terminal.say(f"Written to {folder.path / PAGE}.")
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


def _environment(kind: Kind, run: ResolvedRun, counts: tuple[int, ...], machines: Machines | None) -> dict[str, Any]:
    measured = sorted({contender.devices for contender in find_contenders(kind, run, counts)})
    facts = machine_facts(busy_share()) if machines is None else machines.all[0].facts
    return describe(kind, run, measured, facts, machines)


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
