"""The price of a sync interval, as a sentence."""

from __future__ import annotations

import json
from typing import Any

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from app.state.sync_price import ROWS, price_text
from core.measure.link import Link

LINK = Link(mb_per_s=500.0, latency_s=0.001, ranks=2, backend="gloo")
MODEL = {"event": "model", "trainable_bytes": 4_000_000}
MEASURED = "500 MB/s between 2 devices."


def run(*lines: dict[str, Any]) -> RunSeries:
    series = RunSeries()
    series.apply(parse_lines([json.dumps(line).encode() for line in lines]))
    return series


def step(number: int, rank: int = 0, **values: float) -> dict[str, Any]:
    return {"event": "step", "rank": rank, "step": number, "ts": float(number), **values}


def test_without_a_measurement_there_is_no_price() -> None:
    assert price_text(None, 10, run(MODEL, step(1, step_time_s=0.1))) == ""


def test_without_a_run_of_the_model_only_the_link_is_known() -> None:
    unknown = f"{MEASURED} Select a run of this model to predict its step time."
    assert price_text(LINK, 10, RunSeries()) == unknown
    assert price_text(LINK, 10, run(step(1, step_time_s=0.1))) == unknown
    assert price_text(LINK, 10, run(MODEL)) == unknown
    assert price_text(LINK, 10, run({**MODEL, "trainable_bytes": "?"}, step(1, step_time_s=0.1))) == unknown


def test_the_newest_model_and_the_mean_over_ranks_count() -> None:
    shown = run({**MODEL, "trainable_bytes": 9}, MODEL, step(1, step_time_s=0.08), step(1, rank=1, step_time_s=0.12))
    assert price_text(LINK, 1, shown) == f"{MEASURED} Predicted: 4 MB a step, about 8 % of the time waiting."
    assert price_text(LINK, None, shown) == f"{MEASURED} Predicted: nothing is sent while training."


def test_waiting_is_no_part_of_the_step_that_is_predicted_from() -> None:
    synchronised = run(MODEL, step(1, step_time_s=0.2, sync_wait_s=0.1, sync_bytes=4e6))
    assert price_text(LINK, 1, synchronised) == (
        f"{MEASURED} Predicted: 4 MB a step, about 8 % of the time waiting. "
        "Selected run: 4 MB a step, about 50 % of the time waiting."
    )


def test_old_steps_do_not_count() -> None:
    slow = [step(number, step_time_s=5.0) for number in range(1, 50)]
    fast = [step(50 + number, step_time_s=0.1) for number in range(ROWS)]
    assert price_text(LINK, 1, run(MODEL, *slow, *fast)) == price_text(LINK, 1, run(MODEL, *fast))
