"""A process that writes a run's metrics as a host does: whole batches, columns beside them, a resume in the middle.

``python -m tests.helpers.metrics_writer RUN_DIR STEPS SEED [keep-columns]``
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.metrics.columns import ColumnsWriter
from core.metrics.metrics_file import MetricsWriter
from core.run_folder.store import RunStore

RANKS = 2


def lines_of(steps: int, seed: int) -> Iterator[dict[str, Any]]:
    """What is written: two ranks, evaluations, and a second attempt that trains a tenth of the steps again."""
    half, again = steps // 2, steps // 2 - steps // 10
    yield {"event": "launch", "rank": -1, "attempt": 1, "resumed_from": None}
    yield from _attempt(1, half, 1, seed)
    yield {"event": "launch", "rank": -1, "attempt": 2, "resumed_from": {str(rank): again for rank in range(RANKS)}}
    yield from _attempt(again + 1, steps, 2, seed)
    yield {"event": "finished", "rank": -1, "attempt": 2}


def _attempt(first: int, last: int, attempt: int, seed: int) -> Iterator[dict[str, Any]]:
    for step in range(first, last + 1):
        for rank in range(RANKS):
            loss = 1.0 / step + rank + 10 * attempt + seed
            yield {"event": "step", "rank": rank, "attempt": attempt, "step": step, "loss": loss}
        if step % 50 == 0:
            yield {"event": "eval", "rank": 0, "attempt": attempt, "step": step, "val_loss": float(step)}


def main(run_dir: Path, steps: int, seed: int, keep_columns: bool) -> None:
    chance = random.Random(seed)
    store = RunStore(run_dir)
    columns = ColumnsWriter(run_dir) if keep_columns else None
    pending = [line | {"ts": 1e9 + 0.01 * n} for n, line in enumerate(lines_of(steps, seed))]
    with MetricsWriter(store.metrics) as writer:
        while pending:
            count = chance.randint(1, 400)
            batch, pending = pending[:count], pending[count:]
            lines = [json.dumps(line).encode() for line in batch]
            size = writer.append(lines)
            if columns is not None:
                columns.append(lines, batch, size)
                if chance.random() < 0.3:
                    columns.flush()
            time.sleep(chance.random() * 0.01)
    if columns is not None:
        columns.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), "keep-columns" in sys.argv[4:])
