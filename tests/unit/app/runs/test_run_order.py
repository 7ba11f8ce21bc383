"""Order of the list of runs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from app.runs.run_order import BEST, ordered
from app.runs.run_row import RunRow
from core.metrics.curve import MetricCurve
from core.recipes.main_metric import MainMetric
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
    row("live", 0.5, state="training", loss=2.0, updated=50.0),
    row("gamma", 3.0, loss=0.0, attempt=2),
    row("kept", 0.1, pinned=True, loss=9.0),
    RunRow(RunRecord(RunEntry(Path("/runs/half"), None, "Damaged."))),
]


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("newest", ["kept", "live", "gamma", "Alpha", "beta", "half"]),
        ("name", ["kept", "Alpha", "beta", "gamma", "half", "live"]),
        ("best", ["kept", "gamma", "beta", "live", "Alpha", "half"]),
        ("duration", ["kept", "live", "gamma", "Alpha", "beta", "half"]),
    ],
)
def test_orders(order: str, names: list[str]) -> None:
    assert [one.path.name for one in ordered(ROWS, order)] == names


RETURN = MainMetric("return", "evaluation return", ("episode_return",), (), is_higher_better=True)


def test_the_best_is_by_each_runs_own_metric_in_its_direction() -> None:
    """A PPO run has a loss too, which says little."""
    names = ("low", "high", "unread", "broken")
    games = [replace(row(name, float(number), loss=float(number)), metric=RETURN) for number, name in enumerate(names)]
    values = {"low": 3.0, "high": 200.0, "broken": math.nan}
    curves = {Path(f"/runs/{name}"): MetricCurve((value,), value) for name, value in values.items()}
    texts = [row("worse", 8.0, loss=2.0), row("better", 7.0, loss=1.0)]
    found = [one.path.name for one in ordered([*games, *texts], BEST, curves)]
    assert found == ["better", "worse", "high", "low", "broken", "unread"]
