"""Node changes: what is said when a run continues on fewer machines, or on more. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.formatting import listed

LOST: Final = "node_lost"
RETURNED: Final = "node_returned"


def node_changes(before: Sequence[str], now: Sequence[str]) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The events for what has changed between two attempts, each with its fields.

    Args:
        before: The names of the machines of the last attempt, which may be the same; empty: it was on one machine.
        now: Those of this attempt.
    """
    if not before or not now:
        return ()
    lost, new = list((Counter(before) - Counter(now)).elements()), list((Counter(now) - Counter(before)).elements())
    machines = f"{len(now)} machine{'' if len(now) == 1 else 's'} ({', '.join(dict.fromkeys(now))})"
    left = f"The run continues on {machines}"
    changes: list[tuple[str, Mapping[str, Any]]] = []
    if lost:
        alert = {
            "kind": LOST,
            "title": f"{_machines(lost)} lost",
            "cause": f"{listed(lost)} does not answer any more: it was ended or switched off, or the network to it is "
            f"cut. {left}, from its last checkpoint.",
            "next_step": f"Start the command of the run on {listed(lost)} again: the run takes it back.",
        }
        changes.append(("alert", alert))
    if new:
        is_back = {"kind": RETURNED, "title": f"{_joined(new)}", "cause": f"{left}, from a new checkpoint."}
        changes.append((RETURNED, is_back))
    return tuple(changes)


def _machines(names: Sequence[str]) -> str:
    return "A machine was" if len(names) == 1 else f"{len(names)} machines were"


def _joined(names: Sequence[str]) -> str:
    return "A machine has joined" if len(names) == 1 else f"{len(names)} machines have joined"
