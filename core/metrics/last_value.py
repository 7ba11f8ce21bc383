"""Last value of a metric: one figure of a run, the same in window, lists, comparisons and on the command line.

It is raw, never smoothed: the mean over ranks of each rank's newest finite value; of a rate, their sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from core.metrics.metric import metric

# Where a rank's newest value is looked for: a metric that was not reported for 256 rows has none.
NEWEST_ROWS: Final = 256


def last_value(name: str, newest: Iterable[float | None]) -> float | None:
    known = [value for value in newest if value is not None and math.isfinite(value)]
    if not known:
        return None
    return math.fsum(known) / (1 if metric(name).is_rate else len(known))
