"""`rankdeck rename`, `note`, `tag`, `rm` and `find`: keeping order among many runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from core.cli.runs import chosen_runs_dir, entry_values, list_table
from core.cli.terminal import Terminal
from core.errors import RunNotFoundError, UsageError
from core.run_folder.bin import binned_runs, empty_bin, remove_run, require_ended, restore_run
from core.run_folder.notes import read_notes, write_notes
from core.run_folder.record import read_record
from core.run_folder.run_filter import filter_problem, matching, parse_filter, unknown_names
from core.run_folder.store import RunStore, find_run, list_runs


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
    """Moves runs to the bin, puts them back, or empties the bin."""
    runs_dir = chosen_runs_dir(arguments)
    if arguments.empty_bin:
        if arguments.runs or arguments.undo:
            raise UsageError("--empty-bin takes no runs.", "Run it alone: rankdeck rm --empty-bin")
        count = empty_bin(runs_dir)
        terminal.say(f"Deleted {count} run{'' if count == 1 else 's'} for good.")
        return 0
    if not arguments.runs:
        raise UsageError("No run was given.", "Give one or more. To list runs: rankdeck runs")
    if arguments.undo:
        for text in arguments.runs:
            terminal.say(f"Put back: {restore_run(_in_bin(runs_dir, text)).name}")
        return 0
    stores = [find_run(runs_dir, text) for text in arguments.runs]  # all are there before the first is moved
    for store in stores:
        require_ended(store)
    for store in stores:
        remove_run(store)
        terminal.say(f"{store.dir.name} is in the bin. Put it back: rankdeck rm --undo {store.dir.name}")
    return 0


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
        list_table([(record.entry, record.label) for record in found], terminal)
    elif unknown:
        terminal.say(f"No run in {runs_dir} has a value named {', '.join(unknown)}.")
    else:
        terminal.say(f"No run in {runs_dir} matches.")
    return 0


def _find(arguments: argparse.Namespace) -> RunStore:
    return find_run(chosen_runs_dir(arguments), arguments.run)


def _in_bin(runs_dir: Path, text: str) -> Path:
    matches = [entry.path for entry in binned_runs(runs_dir) if entry.path.name.startswith(text)]
    exact = [path for path in matches if path.name == text]
    if len(exact or matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise UsageError(f"{text!r:.100} means {len(matches)} runs in the bin.", "Give more of its id.")
    raise RunNotFoundError(
        f"No run in the bin of {runs_dir} is called {text!r:.100}.", "List them: rankdeck runs --bin"
    )
