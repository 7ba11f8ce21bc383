"""Entries of the command palette, found by the words of their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.config.fields import FieldSpec
    from core.recipes.manifest import Recipe
    from core.run_folder.record import RunRecord

RUN: Final = "Run"
COMMAND: Final = "Command"
SETTING: Final = "Setting"
RECIPE: Final = "Recipe"
TAB: Final = "Tab"


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One entry.

    Attributes:
        kind: What it is ("Run", "Command" …), shown beside it.
        title: What it is called.
        target: What to reach, as its kind has it: a run's folder, a setting's name, a page.
        detail: Shown at the right: a key, a state, a unit.
        also: Other texts that find it.
        why_not: Why it cannot be used now, as a sentence; empty where it can.
    """

    kind: str
    title: str
    target: Path | str
    detail: str = ""
    also: str = ""
    why_not: str = ""

    @property
    def spoken(self) -> str:
        """For screen readers: "Resume…, command, Ctrl+R"."""
        parts = [self.title, self.kind.lower(), self.detail]
        text = ", ".join(part for part in parts if part)
        return f"{text}. Unavailable: {self.why_not}" if self.why_not else text


def run_entries(records: Iterable[RunRecord], values: Mapping[Path, str]) -> list[PaletteEntry]:
    """Runs by name; their tags, notes and folders find them too.

    Args:
        records: The runs.
        values: The last value of each run's main metric, by its folder, where it is known.
    """
    entries = []
    for record in records:
        notes = record.notes
        detail = " · ".join(part for part in (record.entry.word, values.get(record.path, "")) if part)
        also = " ".join((*notes.tags, notes.note, record.path.name, record.entry.word))
        entries.append(PaletteEntry(RUN, record.label, record.path, detail, also))
    return entries


def command_entry(name: str, text: str, key: str, description: str, why_not: str) -> PaletteEntry:
    """An action of the window.

    Args:
        name: By which it is triggered.
        text: On its button, with mnemonic and ellipsis.
        key: As its menu shows it.
        description: What it does.
        why_not: Why it cannot be used now; empty where it can.
    """
    title = text.replace("&&", "\0").replace("&", "").replace("\0", "&")
    return PaletteEntry(COMMAND, title, name, key, description, why_not)


def field_entries(specs: Mapping[str, FieldSpec], labels: Mapping[str, str]) -> list[PaletteEntry]:
    """Settings of the New run sheet.

    Args:
        specs: Fields of its form, by name.
        labels: Its other parts: name → what it is called.
    """
    parts = [PaletteEntry(SETTING, label, name, also="new run") for name, label in labels.items()]
    fields = [
        PaletteEntry(SETTING, spec.label, name, spec.unit, f"new run {name.replace('_', ' ')} {spec.help}")
        for name, spec in specs.items()
    ]
    return parts + fields


def recipe_entries(recipes: Sequence[Recipe]) -> list[PaletteEntry]:
    """A new run of each recipe; one that cannot be used says why."""
    return [
        PaletteEntry(RECIPE, f"New run: {recipe.title}", recipe.name, also=recipe.description, why_not=recipe.problem)
        for recipe in recipes
    ]


def tab_entries(titles: Sequence[str], why_not: str) -> list[PaletteEntry]:
    """Tabs of the shown run; the target is a tab's number."""
    plain = [title.replace("&", "") for title in titles]
    return [
        PaletteEntry(TAB, title, str(place), also="tab", why_not=why_not) for place, title in enumerate(plain) if title
    ]


def best_entries(entries: Iterable[PaletteEntry], query: str, many: int) -> list[PaletteEntry]:
    """The entries that hold all words of a query, the best first; of equal ones the earlier.

    Args:
        entries: All.
        query: As typed; empty: the first entries, those that cannot be used last.
        many: How many at most.
    """
    terms = query.casefold().split()
    scored = [(entry, sum(_score(word, entry) for word in terms)) for entry in entries if _has_all(entry, terms)]
    scored.sort(key=lambda found: (bool(found[0].why_not), -found[1]))
    return [entry for entry, _ in scored[:many]]


def _has_all(entry: PaletteEntry, terms: Sequence[str]) -> bool:
    text = f"{entry.title} {entry.also}".casefold()
    return all(word in text for word in terms)


def _score(word: str, entry: PaletteEntry) -> float:
    """From the title's start over the start of a word to other texts; of two that fit alike, the shorter title."""
    title = entry.title.casefold()
    place = 3 if title.startswith(word) else 2 if f" {word}" in title else 1 if word in title else 0
    return place + 1 / (1 + len(title))
