"""Growth of memory from step to step: a least-squares slope with its uncertainty. Pure.

Memory after one step is nearly what it was after the step before, so a fit that takes all values for independent would
be far too certain. Their effective number is taken instead, from the correlation of neighbouring residuals (Santer et
al., doi:10.1029/1999JD901105, section 4).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from core.formatting import byte_size

# In the half that counts.
LEAST_VALUES: Final = 10
_AHEAD: Final = 10_000
# Student's t, 95 % of both sides, by degrees of freedom from 1 on.
_T: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)


@dataclass(frozen=True, slots=True)
class Growth:
    """How memory changes.

    Attributes:
        bytes_per_step: The slope.
        error: Half of the range in which it lies with a certainty of 95 %.
        steps: Over how many steps.
    """

    bytes_per_step: float
    error: float
    steps: int

    @property
    def verdict(self) -> Literal["grows", "no growth"]:
        return "grows" if self.bytes_per_step - self.error > 0 else "no growth"

    @property
    def figures(self) -> str:
        return f"{self.bytes_per_step:,.0f} ± {self.error:,.0f}"

    @property
    def sentence(self) -> str:
        if self.verdict == "grows":
            ahead = byte_size(round(self.bytes_per_step * _AHEAD))
            return f"Memory grows by {self.figures} bytes a step: {ahead} in {_AHEAD:,} steps."
        most = byte_size(max(0, round(self.bytes_per_step + self.error)))
        return f"No leak seen: {self.figures} bytes a step over {self.steps:,} steps, so at most {most} a step."


def find_growth(values: Sequence[float]) -> Growth | None:
    """The growth in the second half of the steps: in the first one, memory is still being taken. None: too few.

    Args:
        values: Bytes after each step.
    """
    kept = values[len(values) // 2 :]
    count = len(kept)
    if count < LEAST_VALUES:
        return None
    slope, base = statistics.linear_regression(range(count), kept)
    residuals = [value - base - slope * step for step, value in enumerate(kept)]
    squares = sum(residual * residual for residual in residuals)
    if squares <= 1e-9 * count:
        return Growth(slope, 0.0, count)
    beside = sum(one * other for one, other in itertools.pairwise(residuals)) / squares
    independent = max(3.0, count * (1 - max(0.0, beside)) / (1 + max(0.0, beside)))
    spread = count * (count * count - 1) / 12  # of the steps around their mean
    error = math.sqrt(squares / (independent - 2) / spread)
    return Growth(slope, _t(independent - 2) * error, count)


def _t(freedom: float) -> float:
    whole = int(freedom)
    return _T[max(1, whole) - 1] if whole <= len(_T) else 1.96 + 2.5 / freedom
