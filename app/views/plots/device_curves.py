"""One device over time: how busy it was, how full, how warm, and what power it drew."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from PySide6.QtGui import QPalette

from app.run_data.curves import Curve, reduce_range
from app.run_data.pyramid import Floats
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from app.views.plots.drawing import Area, Layer, Line
from app.views.plots.source import Reading, View
from app.views.plots.traces import without_pauses
from app.views.style.palette import faint, plot_colours, rank_colour
from core.formatting import UNKNOWN, gibibytes, memory_of
from core.machine.devices.gpu_counters import NOTABLE_SHARED_BYTES

QUANTITIES: Final = ("utilisation", "memory", "temperature", "power")
# What a quantity is drawn as, in the head of the card.
FORMS: Final = {
    "utilisation": "utilisation over the run",
    "memory": "line: memory",
    "temperature": "dashes: °C",
    "power": "dots: power",
}
DASHES: Final[dict[str, tuple[float, ...]]] = {"memory": (), "temperature": (4.0, 3.0), "power": (1.0, 3.0)}
GIB: Final = 2**30
PROCESS: Final = "this run's process"
MACHINE: Final = "whole machine"
LEAST_MEMORY_SHARE: Final = 0.25


@dataclass(slots=True)
class DeviceOptions:
    """Which quantities are drawn; all of them are always in the readout.

    Attributes:
        shown: Quantities.
        is_over: The run has ended: a readout without a crosshair has means and peaks, not the last sample.
    """

    shown: set[str] = field(default_factory=lambda: {"utilisation"})
    is_over: bool = False


class DeviceCurves:
    """A device's samples on one scale from 0 to 100: percent busy, percent full, °C, percent of the power limit.

    Args:
        run: Gives the run that is shown just now.
        options: Shared by all devices.
        uuid: Which device; "host" is the machine itself.
        rank: The rank that trains on it, for its colour; None if none does.
    """

    def __init__(self, run: Callable[[], RunSeries], options: DeviceOptions, uuid: str, rank: int | None) -> None:
        self._run = run
        self._options = options
        self._uuid = uuid
        self._rank = rank
        self.fed_by = (f"device/{uuid}",)

    def rows(self, view: View) -> int:
        times = self._times(view)
        return 0 if times is None else self._run().device(self._uuid).rows_about("ts", *times)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """Utilisation as an area, the others as lines of different dashes."""
        run, text = self._run(), plot_colours(palette).text
        series = run.device(self._uuid)
        times = self._times(view)
        if times is None or not series.rows:
            return []
        layers: list[Layer] = []
        positions: Floats | None = None
        for quantity in (name for name in QUANTITIES if name in self._options.shown):
            curve, factor = self._percent(series, quantity, times, bins // 2)
            if not len(curve.x) or factor is None:
                continue
            if positions is None:  # what was sampled together stands at the same places
                positions = curve.x if view.axis == "ts" else run.step_positions(curve.x)
            there = ~np.isnan(positions)
            x, percent = positions[there], curve.mean[there] * factor
            if quantity == "utilisation":
                colour = text if self._rank is None else rank_colour(self._rank, palette)
                layers.append(
                    Area(
                        x,
                        np.zeros(len(x)),
                        percent,
                        faint(colour, palette, 0.7 if self._rank is not None else 0.3),
                        quantity,
                    )
                )
            else:
                layers.append(Line(x, percent, percent, text, quantity, DASHES[quantity]))
        return without_pauses(run, series, view, layers)

    def readings(self, view: View, _palette: QPalette, _layers: Sequence[Layer] = ()) -> list[Reading]:
        run = self._run()
        series, at = run.device(self._uuid), view.cursor
        if at is None and self._options.is_over:
            return _summary(series, self._total(series))
        if at is not None and view.axis == "step":
            times = run.times_of(at, at)
            at = times[0] if times is not None else None
        busy = self._value(series, _busy_name(series), at)
        used, total = self._value(series, "memory_used_bytes", at), self._total(series)
        readings = [Reading(None, "", _unit(busy, "%")), Reading(None, "", _memory(used, total))]
        if (own := self._value(series, "rank_busy_percent", at)) is not None:
            readings.insert(1, Reading(None, "", f"rank {own:.0f} %"))
        if (shared := self._value(series, "rank_shared_bytes", at) or 0.0) >= NOTABLE_SHARED_BYTES:
            readings.append(Reading(None, "+", f"{gibibytes(shared)} GiB shared"))
        for name, unit in (("temperature_celsius", "°C"), ("power_w", "W")):
            if name in series.columns:
                readings.append(Reading(None, "", _unit(self._value(series, name, at), unit)))
        return readings

    def _total(self, series: Series) -> float | None:
        """The memory beside what is used: none for a process, which has no memory of its own."""
        return None if self.measured() == PROCESS else series.last("memory_total_bytes")

    def memory_axis(self) -> str:
        """How much memory is at the top, where that is not all of the device's; else empty."""
        series = self._run().device(self._uuid)
        total = series.last("memory_total_bytes")
        if not total or "memory" not in self._options.shown:
            return ""
        top = _memory_top(series, total)
        if top == total:
            return ""
        return f"memory: the top is {top / GIB:g} of {total / GIB:.0f} GiB"

    def measured(self) -> str:
        if self._uuid == "host":
            return MACHINE
        if not self._uuid.startswith("cpu:"):
            return ""
        return MACHINE if self._rank is None else PROCESS

    def _times(self, view: View) -> tuple[float, float] | None:
        return (view.low, view.high) if view.axis == "ts" else self._run().times_of(view.low, view.high)

    @staticmethod
    def _value(series: Series, name: str, at: float | None) -> float | None:
        """The figure at a time, or the newest: a card that is lost has none, whatever it said before."""
        newest = series.last("ts") if at is None else at
        return None if newest is None else series.value_at(name, "ts", newest)

    def _percent(
        self, series: Series, quantity: str, times: tuple[float, float], bins: int
    ) -> tuple[Curve, float | None]:
        """A quantity's curve over time, and what turns it into percent; None where that is not known."""
        names = {
            "utilisation": (_busy_name(series), None),
            "memory": ("memory_used_bytes", "memory_total_bytes"),
            "temperature": ("temperature_celsius", None),
            "power": ("power_w", "power_limit_w"),
        }
        name, whole_name = names[quantity]
        curve, _ = reduce_range(series, name, "ts", *times, bins)
        whole = 100.0 if whole_name is None else series.last(whole_name)
        if quantity == "memory" and whole:
            whole = _memory_top(series, whole)
        return curve, 100.0 / whole if whole else None


def _busy_name(series: Series) -> str:
    return "utilization_percent" if "utilization_percent" in series.columns else "cpu_percent"


def _summary(series: Series, total: float | None) -> list[Reading]:
    """What a run that is over used: means and peaks."""
    readings = [
        Reading(None, "mean", _unit(series.mean(_busy_name(series)), "%")),
        Reading(None, "peak", _memory(series.peak("memory_used_bytes"), total)),
    ]
    if "temperature_celsius" in series.columns:
        readings.append(Reading(None, "peak", _unit(series.peak("temperature_celsius"), "°C")))
    if "power_w" in series.columns:
        readings.append(Reading(None, "mean", _unit(series.mean("power_w"), "W")))
    return readings


def _memory_top(series: Series, total: float) -> float:
    """The memory at the top of the plot: the device's, or less where a quarter of that was never used.

    A run that uses 0.3 of 24 GiB would be a flat line at the bottom.
    """
    peak = series.peak("memory_used_bytes")
    if not peak or peak >= LEAST_MEMORY_SHARE * total:
        return total
    step = 10.0 ** math.floor(math.log10(peak / GIB))
    return min(total, next(GIB * step * factor for factor in (1, 2, 5, 10) if peak <= GIB * step * factor))


def _unit(value: float | None, unit: str) -> str:
    return f"{UNKNOWN if value is None else format(value, '.0f')} {unit}"


def _memory(used: float | None, total: float | None) -> str:
    return memory_of(used, total) if total else f"{gibibytes(used)} GiB"
