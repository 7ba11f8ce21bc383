"""Ctrl+C counted instead of raised: the first asks for a stop, the second for an end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """How often this command was asked to end: Ctrl+C, and what `kill` or a closing terminal sends."""

    def __init__(self) -> None:
        self.count = 0

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


@contextmanager
def counted_interrupts() -> Iterator[Interrupts]:
    """Counts interrupts while the block runs; before and after it they act as usual."""
    interrupts = Interrupts()
    names = ("SIGINT", "SIGTERM", "SIGBREAK", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, interrupts._on_signal) for number in numbers}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
