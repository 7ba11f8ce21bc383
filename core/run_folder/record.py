"""Record of a run as lists and filters see it: state, notes and settings, without metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.run_folder.naming import label
from core.run_folder.notes import RunNotes, read_notes
from core.run_folder.remote_run import RemoteRun, read_remote
from core.run_folder.store import RunEntry, RunStore

_STATE_FIELDS: Final = ("step", "total_steps", "epoch", "loss", "val_loss", "tokens_per_s", "attempt", "recipe", "mode")
# Names of values that need no settings.
OF_STATE: Final = frozenset((*_STATE_FIELDS, "state", "name", "note", "tag", "pinned", "id", "devices", "machine"))


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run, as lists and filters see it; notes and settings are empty where they cannot be read.

    `remote` is the other machine that it is, or was, on.
    """

    entry: RunEntry
    notes: RunNotes = field(default_factory=RunNotes)
    settings: Mapping[str, Any] = field(default_factory=dict)
    remote: RemoteRun | None = None

    @property
    def path(self) -> Path:
        return self.entry.path

    @property
    def label(self) -> str:
        state = self.entry.state
        return self.notes.name or self.path.name if state is None else label(state, self.notes)

    @property
    def machine(self) -> str:
        return self.remote.machine if self.remote is not None and self.remote.is_there else ""

    def value(self, name: str) -> Any:
        state, notes = self.entry.state, self.notes
        if name in ("note", "pinned"):
            return getattr(notes, name)
        if name in ("state", "name", "tag", "id", "machine"):
            own = {"state": self.entry.word, "name": self.label, "tag": notes.tags, "id": self.path.name}
            return own.get(name, self.machine or None)
        if name == "devices":
            return state.world_size if state is not None else None
        if name in _STATE_FIELDS and state is not None:
            return getattr(state, name)
        return self.settings.get(name)

    @property
    def searched_text(self) -> str:
        recipe = self.entry.state.recipe if self.entry.state is not None else ""
        return "\n".join((self.label, self.path.name, self.notes.note, *self.notes.tags, recipe)).lower()


def read_record(entry: RunEntry) -> RunRecord:
    """Read the record of a listed run. An unreadable part is empty: a damaged note must not hide a run."""
    return RunRecord(entry, notes_of(entry.path), settings_of(entry.path), remote_of(entry.path))


def notes_of(folder: Path) -> RunNotes:
    try:
        return read_notes(folder)
    except (RankdeckError, OSError):
        return RunNotes()


def remote_of(folder: Path) -> RemoteRun | None:
    try:
        return read_remote(folder)
    except (RankdeckError, OSError):
        return None


def settings_of(folder: Path) -> dict[str, Any]:
    try:
        values = RunStore(folder).config().as_dict()
    except (RankdeckError, OSError):
        return {}
    options = values.pop("options", None)
    return values | (options if isinstance(options, dict) else {})
