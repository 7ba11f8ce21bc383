"""`rankdeck rename`, `note`, `tag`, `rm`, `find` and `compare`: keeping order among many runs."""

from __future__ import annotations

import argparse
import sys

from core.cli.runs import chosen_runs_dir, entry_values, list_table
from core.cli.terminal import Terminal
from core.compare.comparison import compare_runs
from core.errors import UsageError
from core.run_folder.notes import read_notes, write_notes
from core.run_folder.record import read_record
from core.run_folder.removal import delete_run, recycle_run, require_ended
from core.run_folder.run_filter import filter_problem, matching, parse_filter, unknown_names
from core.run_folder.store import RunStore, find_run, list_runs


def rename(arguments: argparse.Namespace, terminal: Terminal) -> int:
    store = _find(arguments)
    notes = read_notes(store.dir).renamed(" ".join(arguments.name))
    write_notes(store.dir, notes)
    terminal.say(f"{store.dir.name} is now called {notes.name!r}." if notes.name else f"{store.dir.name} has no name.")
    return 0


def note(arguments: argparse.Namespace, terminal: Terminal) -> int:
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
        (delete_run if arguments.permanently else recycle_run)(store)
        terminal.say(
            f"{store.dir.name} {'was deleted for good' if arguments.permanently else 'is in the recycle bin'}."
        )
    return 0


def find(arguments: argparse.Namespace, terminal: Terminal) -> int:
    runs_dir = chosen_runs_dir(arguments)
    text = " ".join(arguments.filter)
    if problem := filter_problem(text):
        raise UsageError(problem, "Correct the filter. Its terms: docs/command-line.md", title="Invalid filter")
    terms = parse_filter(text)
    records = [read_record(entry) for entry in list_runs(runs_dir)]
    found = matching(records, terms)
    if arguments.json:
        terminal.json([entry_values(record.entry, record.notes) for record in found])
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
    runs_dir = chosen_runs_dir(arguments)
    found = compare_runs([find_run(runs_dir, text) for text in arguments.runs])
    if arguments.json:
        terminal.json(found.as_dict(all_rows=arguments.all))
    else:
        terminal.text(found.as_text(all_rows=arguments.all, width=terminal.width).rstrip("\n"))
        for note in found.notes:
            terminal.say(note)
        if found.same_text and not arguments.all:
            terminal.say(f"{found.same_text} Show them too: --all")
    return 0


def _find(arguments: argparse.Namespace) -> RunStore:
    return find_run(chosen_runs_dir(arguments), arguments.run)
