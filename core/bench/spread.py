"""The middle of what turns gave, and how far they lie apart. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Values of turns.

    Attributes:
        median: The middle one.
        low, high: The quartiles; half of all turns lie between them.
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """That of some values; None of none."""
        if not values:
            return None
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


def ratios(values: Sequence[float], base: Sequence[float]) -> list[float]:
    """Each turn's value ÷ that of the base in the same turn, so that what slows the machine down slows both."""
    return [value / beside for value, beside in zip(values, base, strict=False) if beside]
