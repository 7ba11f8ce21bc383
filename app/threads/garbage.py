"""Garbage collection on the GUI thread alone.

Python collects on whichever thread allocates next. A closed dialog in a reference cycle can then be deleted by a worker
thread, and Qt crashes: its widgets belong to the GUI thread.
"""

from __future__ import annotations

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer

LOOK_EVERY_MS: Final = 1000


class GarbageCollection(QObject):
    """Collects from a timer. Automatic collection must be off, and stays off."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, interval=LOOK_EVERY_MS)
        self._timer.timeout.connect(collect_due)

    def start(self) -> None:
        gc.freeze()
        self._timer.start()


def collect_due() -> None:
    """Collects as far back as is due by Python's own thresholds."""
    due = [
        number
        for number, (count, limit) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True))
        if limit and count > limit
    ]
    if due:
        gc.collect(due[-1])
