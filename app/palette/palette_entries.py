"""Entries of the command palette, found by the words of their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.config.fields import FieldSpec
    from core.run_folder.record import RunRecord

RUN: Final = "Run"
COMMAND: Final = "Command"
SETTING: Final = "Setting"


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One entry.

    Attributes:
        kind: "Run", "Command" or "Setting", shown beside it.
        target: A run's folder, an action's name, or a setting's name.
        detail: Shown at the right: a key, a state, a unit.
        also: Other texts that find it.
        why_not: The reason while it cannot be used, as a sentence; empty where it can.
    """

    kind: str
    title: str
    target: Path | str
    detail: str = ""
    also: str = ""
    why_not: str = ""

    @property
    def spoken(self) -> str:
        """The text for screen readers: "Resume…, command, Ctrl+R"."""
        parts = [self.title, self.kind.lower(), self.detail]
        text = ", ".join(part for part in parts if part)
        return f"{text}. Unavailable: {self.why_not}" if self.why_not else text


def run_entries(records: Iterable[RunRecord], values: Mapping[Path, str]) -> list[PaletteEntry]:
    """Runs, found by name, tags, note and folder; `values`: the last value of each run's main metric, by its folder."""
    entries = []
    for record in records:
        notes = record.notes
        detail = " · ".join(part for part in (record.entry.word, values.get(record.path, "")) if part)
        also = " ".join((*notes.tags, notes.note, record.path.name, record.entry.word))
        entries.append(PaletteEntry(RUN, record.label, record.path, detail, also))
    return entries


def field_entries(specs: Mapping[str, FieldSpec], labels: Mapping[str, str]) -> list[PaletteEntry]:
    """Settings of the New run sheet; `labels` names its parts that are no fields of the form."""
    parts = [PaletteEntry(SETTING, label, name, also="new run") for name, label in labels.items()]
    fields = [
        PaletteEntry(SETTING, spec.label, name, spec.unit, f"new run {name.replace('_', ' ')} {spec.help}")
        for name, spec in specs.items()
    ]
    return parts + fields


def best_entries(entries: Iterable[PaletteEntry], query: str, many: int) -> list[PaletteEntry]:
    """The `many` best entries that hold all words of a query; those that cannot be used come last."""
    terms = query.casefold().split()
    texts = ((entry, f"{entry.title} {entry.also}".casefold()) for entry in entries)
    found = [entry for entry, text in texts if all(word in text for word in terms)]
    found.sort(key=lambda entry: (bool(entry.why_not), -sum(_score(word, entry) for word in terms)))
    return found[:many]


def _score(word: str, entry: PaletteEntry) -> float:
    """A rank from the title's start over the start of a word to other texts; of equal ones the shorter title wins."""
    title = entry.title.casefold()
    place = 3 if title.startswith(word) else 2 if f" {word}" in title else 1 if word in title else 0
    return place + 1 / (1 + len(title))
