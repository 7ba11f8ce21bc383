"""Order of the list of runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models.run_order import ordered
from app.models.run_row import RunRow
from core.run_folder.notes import RunNotes
from core.run_folder.record import RunRecord
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry


def row(name: str, created: float, pinned: bool = False, **fields: object) -> RunRow:
    values: dict[str, object] = {"state": "finished", "created": created, "updated": created + 1.0} | fields
    state = RunState(name).replace(**values)
    return RunRow(RunRecord(RunEntry(Path(f"/runs/{name}"), state), RunNotes(pinned=pinned)))


ROWS = [
    row("beta", 1.0, loss=0.5, updated=40.0),
    row("Alpha", 2.0, updated=3.0),
    row("live", 0.5, state="training", loss=2.0, updated=0.5),
    row("gamma", 3.0, loss=0.0, attempt=2),
    row("kept", 0.1, pinned=True, loss=9.0),
    RunRow(RunRecord(RunEntry(Path("/runs/half"), None, "Damaged."))),
]


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("newest", ["kept", "live", "gamma", "Alpha", "beta", "half"]),
        ("name", ["kept", "Alpha", "beta", "gamma", "half", "live"]),
        ("loss", ["kept", "gamma", "beta", "live", "Alpha", "half"]),
        ("duration", ["kept", "live", "beta", "Alpha", "gamma", "half"]),
        ("of another version", ["kept", "live", "gamma", "Alpha", "beta", "half"]),
    ],
)
def test_orders(order: str, names: list[str]) -> None:
    assert [one.path.name for one in ordered(ROWS, order)] == names
