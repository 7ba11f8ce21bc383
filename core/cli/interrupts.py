"""Counts Ctrl+C instead of raising: the first asks for a stop, the second for an end."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """Counts requests to end this command: Ctrl+C, and signals of `kill` or a closing terminal.

    Args:
        alike: A second signal counts only if it is the same as the first: one Ctrl+C at a launcher may reach its
            processes as SIGINT from the terminal and as SIGTERM from the launcher.
    """

    def __init__(self, *, alike: bool = False) -> None:
        self._alike = alike
        self._received: Counter[int] = Counter()

    @property
    def count(self) -> int:
        counts = self._received.values()
        return max(counts, default=0) if self._alike else sum(counts)

    def note(self, number: int, _frame: FrameType | None = None) -> None:
        """Count a signal; also a signal's handler."""
        self._received[number] += 1


@contextmanager
def counted_interrupts(*, alike: bool = False) -> Iterator[Interrupts]:
    """Count interrupts while the block runs; before and after it they act as usual."""
    interrupts = Interrupts(alike=alike)
    names = ("SIGINT", "SIGTERM", "SIGBREAK", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, interrupts.note) for number in numbers}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
