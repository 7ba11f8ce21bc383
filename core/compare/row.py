"""One line of a comparison: what each run has under one name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.formatting import UNKNOWN
from core.metrics.metric import Better


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Attributes:
        name: Of the value, as flags and files have it.
        label: What people call it.
        values: One a run, as JSON has them; None where a run has none.
        texts: The same for people.
        best: The places of the best values; empty where none is better than another.
    """

    name: str
    label: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    best: tuple[int, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the runs do not all have the same."""
        return len(set(self.texts)) > 1

    @property
    def is_empty(self) -> bool:
        return all(text == UNKNOWN for text in self.texts)

    @property
    def changed(self) -> tuple[int, ...]:
        """The places of the values that are not the first run's."""
        return tuple(place for place, own in enumerate(self.texts) if own != self.texts[0])


def best_places(numbers: tuple[float | None, ...], better: Better) -> tuple[int, ...]:
    """Where the best of several numbers stands; nowhere while fewer than two are known, or all are equal."""
    known = [number for number in numbers if number is not None]
    if not better or len(known) < 2 or min(known) == max(known):
        return ()
    best = min(known) if better == "lower" else max(known)
    return tuple(place for place, number in enumerate(numbers) if number == best)
