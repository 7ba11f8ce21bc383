"""Comparison of the settings found with those that a run has: both measured in turns, so that drift cannot decide."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

TURNS: Final = (0, 1, 1, 0, 0, 1)
"""Whose turn it is: 0 the run's own settings, 1 those found. Two in a row make a pair, each begun by the other."""
LEAST_PAIRS: Final = 2
WORTH: Final = 0.02
"""A gain of less than this is not worth a change of settings."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Settings that were found against a run's own.

    Attributes:
        ratios: Speed of the settings found ÷ that of the run's own, in each pair of turns.
    """

    ratios: tuple[float, ...]

    @property
    def gain(self) -> float:
        """The mean ratio; 1 where there is none."""
        return statistics.geometric_mean(self.ratios) if self.ratios else 1.0

    @property
    def is_faster(self) -> bool:
        """Whether the settings found are faster beyond the noise: in every pair, and by more than `WORTH` together."""
        return len(self.ratios) >= LEAST_PAIRS and min(self.ratios) > 1 and self.gain >= 1 + WORTH

    @property
    def range(self) -> str:
        """The least and the largest ratio: "1.27 to 1.35 ×"; empty where there is none."""
        return f"{min(self.ratios):.2f} to {max(self.ratios):.2f} ×" if self.ratios else ""


def compare(speeds: Sequence[float]) -> Comparison:
    """The comparison that turns made, in the order of `TURNS`; a last one without its partner does not count.

    Args:
        speeds: Samples a second in each turn.
    """
    pairs = len(speeds) // 2
    ratios = []
    for pair in range(pairs):
        by_settings = {TURNS[turn]: speeds[turn] for turn in (2 * pair, 2 * pair + 1)}
        ratios.append(by_settings[1] / by_settings[0])
    return Comparison(tuple(ratios))
