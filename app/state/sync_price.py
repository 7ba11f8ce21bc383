"""Price of a sync interval, measured on the selected devices and on the shown run."""

from __future__ import annotations

import numpy as np

from app.run_data.run_series import RunSeries
from core.measure.link import Link, SyncCost, sync_cost

# How many of the newest steps count.
ROWS = 256


def price_text(link: Link | None, every: int | None, run: RunSeries) -> str:
    """The price as a sentence; empty while nothing was measured.

    Args:
        link: Between the ticked devices.
        every: Steps between two synchronisations; None is never.
        run: The run that is shown: its model's size and the time of its steps are taken for the next one's.
    """
    if link is None:
        return ""
    measured = f"{link.mb_per_s:,.0f} MB/s between {link.ranks} devices."
    size = _model_bytes(run)
    step_s = _mean(run, "step_time_s")
    if size is None or step_s is None:
        return f"{measured} Select a run of this model to predict its step time."
    waited_s = _mean(run, "sync_wait_s") or 0.0
    predicted = sync_cost(size, max(1e-6, step_s - waited_s), link, every).text
    text = f"{measured} Predicted: {predicted}."
    sent = _mean(run, "sync_bytes")
    if not sent:
        return text
    return f"{text} Selected run: {SyncCost(sent, waited_s / step_s if step_s > 0 else 0.0).text}."


def _model_bytes(run: RunSeries) -> float | None:
    models = run.events_of("model")
    found = models[-1].get("trainable_bytes") if models else None
    return float(found) if isinstance(found, int | float) else None


def _mean(run: RunSeries, name: str) -> float | None:
    """The mean over ranks of a column's newest values; None where there are none."""
    means = []
    for rank in run.ranks():
        series = run.rank(rank)
        column = series.columns.get(name)
        values = column.read(max(0, series.rows - ROWS), series.rows) if column is not None else np.empty(0)
        known = values[~np.isnan(values)]
        if len(known):
            means.append(float(known.mean()))
    return sum(means) / len(means) if means else None
