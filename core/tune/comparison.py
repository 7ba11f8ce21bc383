"""Comparison of the settings found with those that a run has: both are measured in turns, so that no drift decides."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

TURNS: Final = (0, 1, 1, 0, 0, 1, 1, 0)
"""Whose turn it is: 0 the run's own settings, 1 those found. Two in a row make a pair, each begun by the other."""
LEAST_PAIRS: Final = 3
WORTH: Final = 0.02
"""A gain of less than this is not worth a change of settings."""
_ONE_SIDED_95: Final = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.90, 1.86, 1.83, 1.81)
"""Student's t by degrees of freedom from 1 on; beyond them the last one, which is a little too strict."""


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
    def certain_gain(self) -> float:
        """What the mean ratio is at least, with a certainty of 95 % given how much the pairs differ; 0 with too few."""
        if len(self.ratios) < LEAST_PAIRS:
            return 0.0
        logs = [math.log(ratio) for ratio in self.ratios]
        t = _ONE_SIDED_95[min(len(logs) - 1, len(_ONE_SIDED_95)) - 1]
        return math.exp(statistics.mean(logs) - t * statistics.stdev(logs) / math.sqrt(len(logs)))

    @property
    def is_faster(self) -> bool:
        """Whether the settings found are faster beyond the noise.

        By more than `WORTH`, in the mean and in the middle pair, so that one turn in which another program was in the
        way does not decide; and by more than what the pairs differ.
        """
        if len(self.ratios) < LEAST_PAIRS:
            return False
        return min(self.gain, statistics.median(self.ratios)) >= 1 + WORTH and self.certain_gain > 1

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
