"""Text column of a table: guessed from names and contents, unless the user names it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

NAMES: Final = (
    "text", "content", "document", "body", "article", "story", "passage", "markdown", "code", "completion",
    "response", "output", "answer", "message", "review", "comment", "sentence", "prompt", "instruction", "question",
    "abstract", "description", "summary", "value", "title",
)  # fmt: skip
"""What people call a column of text, the likeliest first."""
_NAME_WEIGHT: Final = 4.0
_OTHER_TEXT: Final = 1.0
_EXAMPLE_CHARS: Final = 80


@dataclass(slots=True)
class ColumnFacts:
    """What a sample of rows shows of one column.

    Attributes:
        rows: Sampled rows in which it has a value.
        texts: Those whose value is text with letters in it.
        chars: Characters of those texts in all.
        distinct: Different texts among them.
        example: The start of the first.
    """

    rows: int = 0
    texts: int = 0
    chars: int = 0
    distinct: set[int] = field(default_factory=set)
    example: str = ""

    def add(self, value: object) -> None:
        """One more row's value."""
        if value is None or (isinstance(value, str) and not value.strip()):
            return
        self.rows += 1
        if isinstance(value, str) and any(map(str.isalpha, value[:1000])):
            self.texts += 1
            self.chars += len(value)
            self.distinct.add(hash(value))
            self.example = self.example or " ".join(value[: 2 * _EXAMPLE_CHARS].split())[:_EXAMPLE_CHARS]

    @property
    def mean_chars(self) -> float:
        """Characters of a text, on average."""
        return self.chars / self.texts if self.texts else 0.0

    def score(self, name: str) -> float:
        """How likely this is the text; 0: not at all.

        Long texts that differ from row to row are likely; a usual name counts as much as sixteen times the length.
        """
        if not self.texts or (self.texts < self.rows / 2 and name.lower() != NAMES[0]):
            return 0.0
        place = NAMES.index(name.lower()) if name.lower() in NAMES else len(NAMES)
        name_score = _NAME_WEIGHT * (1 - place / len(NAMES))
        return _OTHER_TEXT + name_score + math.log2(1 + self.mean_chars) * len(self.distinct) / self.texts


@dataclass(slots=True)
class Columns:
    """The columns that a sample of rows has, in the order in which they came."""

    facts: dict[str, ColumnFacts] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """One more row."""
        for name, value in row.items():
            self.facts.setdefault(name, ColumnFacts()).add(value)

    def merge(self, other: Columns) -> None:
        """Another sample's columns too."""
        for name, facts in other.facts.items():
            mine = self.facts.setdefault(name, ColumnFacts())
            mine.rows += facts.rows
            mine.texts += facts.texts
            mine.chars += facts.chars
            mine.distinct |= facts.distinct
            mine.example = mine.example or facts.example

    @property
    def guess(self) -> str:
        """The likeliest column of text; empty when none holds text."""
        scores = {name: facts.score(name) for name, facts in self.facts.items()}
        best = max(scores, key=lambda name: scores[name], default="")
        return best if best and scores[best] > 0 else ""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(self.facts)

    def has(self, column: str) -> bool:
        """Whether a sampled row has it; ``a.b`` is what stands under ``b`` in the object ``a``."""
        return column in self.facts or column.partition(".")[0] in self.facts

    def as_list(self) -> list[dict[str, Any]]:
        """Plain values, for JSON."""
        return [
            {
                "name": name,
                "text_share": round(facts.texts / facts.rows, 3) if facts.rows else 0.0,
                "mean_chars": round(facts.mean_chars, 1),
                "example": facts.example,
            }
            for name, facts in self.facts.items()
        ]


_MISSING: Final = object()


def row_text(row: Mapping[str, Any], column: str) -> tuple[str, str]:
    """A row's text, and what is wrong with it (a kind of `row_counts.BAD_ROW_TEXTS`; empty: nothing)."""
    value = row.get(column, _MISSING)
    if value is _MISSING and "." in column:
        value = row
        for key in column.split("."):
            value = value.get(key, _MISSING) if isinstance(value, Mapping) else _MISSING
    if value is _MISSING:
        return "", "missing_column"
    if value is None or value == "":
        return "", "empty"
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape"), ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value), ""
    if not isinstance(value, str):
        return "", "not_text"
    return (value, "") if not value.isspace() else ("", "empty")
