"""Order of the list of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from app.models.run_row import RunRow, is_live, lasted_s

NEWEST: Final = "newest"
ORDERS: Final = {NEWEST: "Newest first", "name": "Name", "loss": "Lowest loss first", "duration": "Longest first"}
"""Orders by name, each with its title."""


def ordered(rows: Iterable[RunRow], order: str = NEWEST) -> list[RunRow]:
    """Runs in an order, pinned ones on top; among equals the newest first.

    Args:
        rows: To sort.
        order: One of `ORDERS`; "newest" has live runs above all that have ended.
    """
    key = _KEYS.get(order, _by_date)
    return sorted(rows, key=lambda row: (not row.record.notes.pinned, *key(row), *_by_date(row)))


def _by_date(row: RunRow) -> tuple[Any, ...]:
    state = row.entry.state
    return (not is_live(row.entry), -state.created if state is not None else 0.0, row.path.name)


def _by_name(row: RunRow) -> tuple[Any, ...]:
    return (row.record.label.casefold(),)


def _by_loss(row: RunRow) -> tuple[Any, ...]:
    state = row.entry.state
    loss = state.loss if state is not None else None
    return (loss is None, loss or 0.0)


def _by_duration(row: RunRow) -> tuple[Any, ...]:
    state = row.entry.state
    lasted = lasted_s(state) if state is not None else None
    return (lasted is None, -(lasted or 0.0))


_KEYS: Final[dict[str, Callable[[RunRow], tuple[Any, ...]]]] = {
    "name": _by_name,
    "loss": _by_loss,
    "duration": _by_duration,
}
