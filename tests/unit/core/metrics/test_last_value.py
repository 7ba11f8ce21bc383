"""The last value of a metric: one figure, wherever it is said."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QPalette

from app.charts.cards import LOSS_CARD, Card
from app.charts.run_chart import RunChart
from app.compare.run_overlay import OverlaidRun, RunOverlay
from app.plots.curve_options import CurveOptions
from app.plots.source import View
from app.run.hero_figures import hero_figures
from app.run.run_outcome import best_text
from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.runs.run_row import RunRow, value_text
from core.compare.figures import read_figures
from core.compare.results import result_rows
from core.machine.devices.names import RankNames
from core.metrics import columns
from core.metrics.curve import read_curve
from core.metrics.last_value import last_value
from core.recipes.heroes import DEFAULT_HEROES, Hero
from core.run_folder.record import RunRecord
from core.run_folder.store import RunEntry, RunStore
from tests.helpers.synthetic_run import make_run


def test_it_is_the_mean_of_ranks_and_of_a_rate_the_sum() -> None:
    assert last_value("loss", [1.0, 2.0, None, math.nan, math.inf]) == 1.5
    assert last_value("tokens_per_s", [1.0, 2.0, None]) == 3.0
    assert last_value("loss", []) is last_value("loss", [None, math.nan]) is None


def lines() -> list[dict[str, Any]]:
    """Two ranks that train by themselves: one is ahead, and the last line of each has no finite loss."""
    made = [
        {"event": "step", "ts": 10.0 + step, "rank": rank, "attempt": 1, "step": step, "loss": rank + 4 / step}
        for rank, last in ((0, 8), (1, 5))
        for step in range(1, last + 1)
    ]
    made += [{"event": "step", "ts": 30.0, "rank": rank, "attempt": 1, "step": 9, "lr": 0.5} for rank in range(2)]
    made += [
        {"event": "eval", "ts": 31.0 + rank, "rank": rank, "attempt": 1, "step": step, "val_loss": rank + 2 / step}
        for rank, step in ((0, 4), (0, 8), (1, 5))
    ]
    return made


@pytest.fixture(params=[False, True], ids=["lines", "columns"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RunStore:
    made = make_run(tmp_path / "run", world_size=2, recipe="gone", state="finished")
    made.metrics.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines()))
    if request.param:
        columns.rebuild(made.dir)
    return made


LOSS, EVALUATED = (0.5 + 1.8) / 2, (0.25 + 1.4) / 2


def test_one_number_everywhere(store: RunStore) -> None:
    run, palette, whole = RunSeries(), QPalette(), View("step", 1, 9)
    run.apply(parse_lines([json.dumps(line).encode() for line in lines()]))
    curve = read_curve(store.columns, store.metrics, ("loss",), ("val_loss",))
    assert curve.last == pytest.approx(LOSS)
    record = RunRecord(RunEntry(store.dir, store.stored_state()))
    shown = f"{LOSS:.2f}"
    assert value_text(RunRow(record), curve) == shown
    heroes = (Hero("loss", "Loss", better="lower"), Hero("val_loss", "Validation loss", better="lower"))
    header = hero_figures(heroes, run, store.stored_state(), RankNames(), 0.0)
    assert [figure.value for figure in header] == [shown, f"{EVALUATED:.3f}"]
    legend = {r.label: r.text for r in RunChart(LOSS_CARD, lambda: run, CurveOptions()).legend(whole, palette)}
    assert legend["mean"] == shown
    both = CurveOptions(mean=True)
    legend = {r.label: r.text for r in RunChart(LOSS_CARD, lambda: run, both).legend(whole, palette)}
    assert (legend["mean"], legend["eval"]) == (shown, f"{EVALUATED:.3f}")
    overlaid = [OverlaidRun("run", run)]
    assert [r.text for r in RunOverlay(overlaid, LOSS_CARD, both).readings(whole, palette)] == [shown]
    evals = RunOverlay(overlaid, Card("val_loss", "", evals="val_loss"), both)
    assert [r.text for r in evals.readings(whole, palette)] == [f"{EVALUATED:.3f}"]
    rows = {row.name: row for row in result_rows([record], [read_figures(store)])}
    assert rows["val_loss"].values[0]["value"] == pytest.approx(EVALUATED)
    assert best_text(run, DEFAULT_HEROES) == "Best validation loss 0.250 at step 8."
