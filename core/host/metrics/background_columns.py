"""Background columns: opened on a thread. Rebuilding stale ones may take a minute, and training need not wait."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from core.metrics.columns import ColumnsWriter

log = logging.getLogger(__name__)

CLOSE_S: Final = 5.0
"""A rebuild that is given up ends well within this time."""


class BackgroundColumns:
    """A `ColumnsWriter` that is opened on a thread of its own and takes lines as soon as it is.

    Lines that come before that lie in `metrics.jsonl`, from where the writer catches up on them.

    Args:
        run_dir: The run's folder, its `metrics.jsonl` opened for writing already.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._writer: ColumnsWriter | None = None
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._open, name="columns-opener", daemon=True)
        self._thread.start()

    def append(self, lines: Sequence[bytes], parsed: Sequence[dict[str, Any]], source_bytes: int) -> None:
        if self._writer is not None:
            self._writer.append(lines, parsed, source_bytes)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Ends writing; columns that are not open yet are left to the next host, or to the next reader."""
        self._given_up.set()
        self._thread.join(CLOSE_S)
        if self._writer is not None:
            self._writer.close()

    def _open(self) -> None:
        try:
            self._writer = ColumnsWriter(self._run_dir, self._given_up)
        except Exception:  # whatever it is: columns are made again from the metrics, and the run continues
            log.exception("the columns could not be opened")
