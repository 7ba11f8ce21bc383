"""`rankdeck rename`, `note`, `tag`, `rm`, `bin`, `find` and `compare`: keeping order among many runs."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Final

from core.cli.runs import chosen_runs_dir, entry_values, list_table
from core.cli.terminal import Terminal
from core.compare.comparison import compare_runs
from core.errors import UsageError
from core.formatting import byte_size, moment
from core.paths import default_runs_dir
from core.run_folder.bin import (
    bin_of,
    delete_binned,
    find_binned,
    folder_bytes,
    list_bin,
    remove_run,
    require_ended,
    restore_run,
)
from core.run_folder.notes import read_notes, write_notes
from core.run_folder.record import read_record
from core.run_folder.run_filter import filter_problem, matching, parse_filter, unknown_names
from core.run_folder.store import RunStore, find_run, list_runs

# What `rankdeck bin` does with the runs that it is given.
_BIN_OF_RUNS: Final = ("restore", "delete")


def rename(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Gives a run another name; an empty one gives it its own back."""
    store = _find(arguments)
    notes = read_notes(store.dir).renamed(" ".join(arguments.name))
    write_notes(store.dir, notes)
    terminal.say(f"{store.dir.name} is now called {notes.name!r}." if notes.name else f"{store.dir.name} has no name.")
    return 0


def note(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Prints a run's note, or replaces it; "-" reads it from standard input."""
    store = _find(arguments)
    notes = read_notes(store.dir)
    if not arguments.text:
        if notes.note:
            terminal.text(notes.note)
        return 0
    text = " ".join(arguments.text)
    write_notes(store.dir, notes.noted(sys.stdin.read() if text == "-" else text))
    return 0


def tag(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Adds tags to a run, or takes some away, and prints those that it has."""
    store = _find(arguments)
    notes = read_notes(store.dir)
    changed = notes.tagged(arguments.tags, arguments.remove or ())
    if changed != notes:
        write_notes(store.dir, changed)
    if changed.tags:
        terminal.say(" ".join(changed.tags))
    return 0


def rm(arguments: argparse.Namespace, terminal: Terminal) -> int:
    runs_dir = chosen_runs_dir(arguments)
    if arguments.runs and arguments.all:
        raise UsageError("With --all no runs are named.", "Leave out one of them.")
    if not arguments.runs and not arguments.all:
        raise UsageError("No run was given.", "Give one or more, or --all. To list them: rankdeck runs")
    if arguments.all:
        stores = [RunStore(entry.path) for entry in list_runs(runs_dir)]
    else:
        stores = [find_run(runs_dir, text) for text in arguments.runs]  # all are there before the first is moved
    for store in stores:
        require_ended(store)
    for store in stores:
        removed = remove_run(store)
        where = "" if store.dir.parent == default_runs_dir().absolute() else f' --runs-dir "{store.dir.parent}"'
        terminal.say(f"{store.dir.name} is in the bin. Put it back: rankdeck bin restore {removed.name}{where}")
    return 0


def bin(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Lists the removed runs, puts some back, or deletes some or all of them for good."""
    runs_dir = chosen_runs_dir(arguments)
    if arguments.runs and arguments.action not in _BIN_OF_RUNS:
        raise UsageError(f"rankdeck bin {arguments.action} takes no runs.", "To delete some: rankdeck bin delete RUN …")
    if not arguments.runs and arguments.action in _BIN_OF_RUNS:
        raise UsageError("No run was given.", "Give one or more. To list those in the bin: rankdeck bin")
    if arguments.action == "list":
        _list_bin(arguments, terminal, runs_dir)
        return 0
    if arguments.action == "empty":
        chosen = [run.path for run in list_bin(runs_dir)]
    else:
        chosen = [find_binned(runs_dir, text) for text in arguments.runs]
    if arguments.action == "restore":
        for path in chosen:
            terminal.say(f"Put back: {restore_run(path).name}")
        return 0
    size = sum(map(folder_bytes, chosen))
    count = delete_binned(chosen)
    with contextlib.suppress(OSError):  # it holds others, or is not there
        bin_of(runs_dir).rmdir()
    terminal.say(f"Deleted {count} run{'' if count == 1 else 's'} for good ({byte_size(size)}).")
    return 0


def _list_bin(arguments: argparse.Namespace, terminal: Terminal, runs_dir: Path) -> None:
    runs = list_bin(runs_dir)
    sizes = [folder_bytes(run.path) for run in runs]
    if arguments.json:
        terminal.json(
            [
                {**entry_values(run.record.entry, [], run.record.notes), "removed": run.removed, "size_bytes": size}
                for run, size in zip(runs, sizes, strict=True)
            ]
        )
    elif not runs:
        terminal.say(f"The bin of {runs_dir} is empty.")
    else:
        rows = [
            (run.path.name, run.label, moment(run.removed), byte_size(size))
            for run, size in zip(runs, sizes, strict=True)
        ]
        terminal.table(("RUN", "NAME", "REMOVED", "SIZE"), rows)
        terminal.say(f"{byte_size(sum(sizes))} in all. Put one back: rankdeck bin restore RUN")


def find(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Lists the runs that a filter matches, newest first."""
    runs_dir = chosen_runs_dir(arguments)
    text = " ".join(arguments.filter)
    if problem := filter_problem(text):
        raise UsageError(problem, "Correct the filter. Its terms: docs/command-line.md", title="Invalid filter")
    terms = parse_filter(text)
    records = [read_record(entry) for entry in list_runs(runs_dir)]
    found = matching(records, terms)
    if arguments.json:
        terminal.json([entry_values(record.entry, [], record.notes) for record in found])
        return 0
    unknown = unknown_names(records, terms) if not found else []
    if found:
        list_table(found, terminal)
    elif unknown:
        terminal.say(f"No run in {runs_dir} has a value named {', '.join(unknown)}.")
    else:
        terminal.say(f"No run in {runs_dir} matches.")
    return 0


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


def _find(arguments: argparse.Namespace) -> RunStore:
    return find_run(chosen_runs_dir(arguments), arguments.run)
