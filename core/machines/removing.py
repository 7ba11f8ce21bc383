"""Removal of a machine from the list, and of what was sent there: what each does is said before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.formatting import byte_size, listed
from core.machines.machine import Machine
from core.machines.session import serving
from core.records import Whole
from core.run_folder.record import RunRecord, notes_of, remote_of
from core.run_folder.store import RunStore, list_runs

CLEAN_UP_LIMIT_S: Final = 600.0
"""To find what a run still needs, large files are read."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What removing a machine means for runs.

    Attributes:
        machine: The machine.
        runs: How many runs of the list are on it.
        live: Those that train there, by their names.
    """

    machine: Machine
    runs: int
    live: tuple[str, ...]

    @property
    def live_text(self) -> str:
        """What happens to the runs that train there."""
        if len(self.live) == 1:
            return f"{self.live[0]} trains there. It continues there, and is followed only until the connection ends."
        return f"{listed(self.live)} train there. They continue there, and are followed only until the connection ends."

    @property
    def stays_text(self) -> str:
        """What stays, here and there."""
        copies = (
            f" The copies of {_counted(self.runs, 'run')} here stay too, with what was fetched." if self.runs else ""
        )
        return f"Nothing changes on {self.machine.name}: its runs, and what was sent there, stay.{copies}"


def plan_removal(machine: Machine, runs_dir: Path) -> Removal:
    """Finds the runs on a machine.

    Raises:
        PreflightError: The folder of runs cannot be read.
    """
    records = [RunRecord(entry, notes_of(entry.path), remote=remote_of(entry.path)) for entry in list_runs(runs_dir)]
    there = [record for record in records if record.machine.lower() == machine.name.lower()]
    return Removal(machine, len(there), tuple(record.label for record in there if _is_live(record)))


def _is_live(record: RunRecord) -> bool:
    """Whether it trained when it was last heard of, followed or not."""
    return record.entry.state is not None and RunStore(record.path).stored_state().is_live


@dataclass(frozen=True, slots=True)
class CleanUp:
    """What was sent to a machine and no run there needs.

    Attributes:
        trees, files: How many folders and files.
        freed_bytes: What the disk there gets back.
        kept_bytes: What stays.
    """

    trees: Whole
    files: Whole
    freed_bytes: Whole
    kept_bytes: Whole

    @property
    def has_any(self) -> bool:
        """Whether there is something to remove."""
        return bool(self.trees or self.files)

    def text(self, name: str, *, removed: bool) -> str:
        """ "gpubox: 1.2 GB of what was sent can be removed (2 folders, 14 files). Runs there need the other 40 MB." """
        kept = f" {byte_size(self.kept_bytes)} stay: runs there need them, or they are new." if self.kept_bytes else ""
        if not self.has_any:
            return f"{name}: nothing of what was sent can be removed.{kept}"
        counts = f"{_counted(self.trees, 'folder')}, {_counted(self.files, 'file')}"
        done = "was removed" if removed else "can be removed: no run there needs it"
        return f"{name}: {byte_size(self.freed_bytes)} of what was sent {done} ({counts}).{kept}"


def clean_up(machine: Machine, *, remove: bool) -> CleanUp:
    """Removes from a machine what was sent there and no run needs; or only says what that is.

    Raises:
        RunBusyError, MachineError: A run trains there, or another connection may be sending.
        UnreachableError: There is no connection.
    """
    with serving(machine) as session:
        return session.ask({"op": "clean_up", "remove": remove}, CleanUp, CLEAN_UP_LIMIT_S)


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
