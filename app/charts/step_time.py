"""Chart of a step's time in parts: waiting and working."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtGui import QPalette

from app.plots.curve_options import CurveOptions
from app.plots.drawing import Area, Layer
from app.plots.scale import Scale
from app.plots.source import Reading, View
from app.plots.traces import mean_of_values, rows_in, steps_in, value_of, without_pauses
from app.run_data.curves import mean_of, reduce_range
from app.run_data.pyramid import Floats
from app.run_data.run_series import RunSeries
from app.style.palette import plot_colours
from core.formatting import UNKNOWN, short_duration


class StepTime:
    """How long a step takes: waiting (for data, for other ranks) at the bottom, working on top; the mean over ranks."""

    fed_by = ("rank",)
    floor: float | None = 0.0
    unit = "s"
    fixed_scale: Scale | None = None

    def __init__(self, run: Callable[[], RunSeries], options: CurveOptions) -> None:
        self._run = run
        self._options = options

    def note(self) -> str:
        return self._options.note(self._run())

    def rows(self, view: View) -> int:
        return rows_in(self._run().clock(), view)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        run, colours = self._run(), plot_colours(palette)
        parts = {name: self._mean(run, name, view, bins // 2) for name in ("step_time_s", "data_wait_s", "sync_wait_s")}
        x, total = parts["step_time_s"]
        if not len(x):
            return []
        wait = np.zeros(len(x))
        for name in ("data_wait_s", "sync_wait_s"):
            wait_x, values = parts[name]
            if len(wait_x) == len(x):
                wait += np.nan_to_num(values)
        known = ~np.isnan(x)
        x, total, wait = x[known], total[known], np.fmin(wait, total)[known]
        nothing = np.zeros(len(x))
        areas: dict[str, Layer] = {"wait": Area(x, nothing, wait, colours.wait, "wait s")}
        if self._options.is_hidden("wait"):
            areas["work"] = Area(x, nothing, total - wait, colours.work, "work s")
        else:
            areas["work"] = Area(x, wait, total, colours.work, "work s")
        shown = [area for key, area in areas.items() if not self._options.is_hidden(key)]
        return without_pauses(run, run.clock(), view, shown)

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        return [reading for reading in self.legend(view, palette, layers) if not reading.is_hidden]

    def legend(self, view: View, palette: QPalette, _layers: Sequence[Layer] = ()) -> list[Reading]:
        texts, colours = self._texts(view), plot_colours(palette)
        return [
            Reading(colour, key, texts[key], key=key, is_hidden=self._options.is_hidden(key))
            for key, colour in (("wait", colours.wait), ("work", colours.work))
            if key in texts
        ]

    def _texts(self, view: View) -> dict[str, str]:
        run = self._run()
        ranks = self._options.ranks(run)
        if not any("step_time_s" in run.rank(rank).columns for rank in ranks):
            return {}
        total = mean_of_values(value_of(run.rank(rank), "step_time_s", view) for rank in ranks)
        waits = [
            mean_of_values(value_of(run.rank(rank), n, view) for rank in ranks) for n in ("data_wait_s", "sync_wait_s")
        ]
        if total is None:
            return {"wait": UNKNOWN, "work": UNKNOWN}
        wait = min(total, sum(value for value in waits if value is not None))
        known = any(value is not None for value in waits)
        return {"wait": short_duration(wait) if known else UNKNOWN, "work": short_duration(total - wait)}

    def _mean(self, run: RunSeries, name: str, view: View, bins: int) -> tuple[Floats, Floats]:
        steps = steps_in(run, view)
        if steps is None:
            return np.empty(0), np.empty(0)
        curves = [reduce_range(run.rank(rank), name, "step", *steps, bins)[0] for rank in self._options.ranks(run)]
        mean = mean_of(curves, bounds=False)
        return mean.x if view.axis == "step" else run.time_positions(mean.x), mean.mean
