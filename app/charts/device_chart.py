"""Charts of devices over time: how busy each was, how full, how warm, and what power it drew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from PySide6.QtGui import QPalette

from app.charts.cards import DEVICE_PREFIX, Card
from app.plots.curve_options import MOST_RANKS, CurveOptions, rank_key
from app.plots.drawing import Layer
from app.plots.scale import Scale
from app.plots.source import Reading, View
from app.plots.traces import Trace, TraceChart
from app.run_data.pyramid import Floats
from app.run_data.run_series import RunSeries
from app.run_data.series import Series
from app.style.palette import plot_colours, rank_colour
from core.formatting import UNKNOWN, gibibytes, memory_of
from core.machine.devices import POWER_CAP, DeviceSample
from core.machine.devices.gpu_counters import NOTABLE_SHARED_BYTES
from core.machine.devices.names import SEPARATOR, label_by_uuid
from core.metrics.metric import GIB, Metric

HOST: Final = "host"
# Samples for which a warning stays after its cause is gone.
WARNING_HELD: Final = 10
# More lines would leave the chart no room.
MOST_WARNINGS: Final = 2


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity measured of a device.

    Attributes:
        metric: Its unit, and its title as a card; it is drawn as it was measured, never smoothed.
        columns: Of a device's samples: the first that the device has.
        is_peak: Of a run that is over the highest value is shown; else the mean.
        scale: Its value range, if that never changes.
        floor: A value that is always at the bottom.
    """

    metric: Metric
    columns: tuple[str, ...]
    is_peak: bool = False
    scale: Scale | None = None
    floor: float | None = 0.0

    @property
    def key(self) -> str:
        return DEVICE_PREFIX + self.metric.name

    def column(self, series: Series) -> str:
        return next((name for name in self.columns if name in series.columns), self.columns[0])


UTILISATION: Final = Quantity(
    Metric("utilisation", "Utilisation", "%", is_set=True),
    ("utilization_percent", "cpu_percent"),
    scale=Scale(0.0, 100.0),
)
MEMORY: Final = Quantity(
    Metric("memory", "Memory", "GiB", is_set=True, divisor=GIB), ("memory_used_bytes",), is_peak=True
)
TEMPERATURE: Final = Quantity(
    Metric("temperature", "Temperature", "°C", is_set=True), ("temperature_celsius",), is_peak=True, floor=None
)
POWER: Final = Quantity(Metric("power", "Power", "W", is_set=True), ("power_w",))
QUANTITIES: Final = {quantity.key: quantity for quantity in (UTILISATION, MEMORY, TEMPERATURE, POWER)}


def device_cards(columns: Collection[str]) -> list[Card]:
    return [
        Card(key, quantity.metric.title, quantity.metric.unit)
        for key, quantity in QUANTITIES.items()
        if any(name in columns for name in quantity.columns)
    ]


def measured_devices(run: RunSeries, options: CurveOptions) -> list[str]:
    """Return the sampled devices, those of ranks first, then in this machine's order; else the machine itself."""
    order = {uuid: place for place, uuid in enumerate(dict.fromkeys((*options.trained_on, *options.names.labels)))}
    found = sorted(run.devices(), key=lambda uuid: (order.get(uuid, len(order)), uuid))[:MOST_RANKS]
    return found or ([HOST] if run.device(HOST).rows else [])


def short_label(uuid: str, labels: Mapping[str, str]) -> str:
    return label_by_uuid(uuid, labels).partition(SEPARATOR)[0]


@dataclass(frozen=True, slots=True)
class SampledByTime:
    """Places of a run's samples, which know no steps, on the axis that is shown."""

    run: RunSeries

    def own_view(self, view: View) -> View:
        if view.axis == "ts":
            return view
        times = self.run.times_of(view.low, view.high)
        if times is None:
            return replace(view, axis="ts", low=-2.0, high=-1.0, cursor=None)
        at = None if view.cursor is None else self.run.times_of(view.cursor, view.cursor)
        return replace(view, axis="ts", low=times[0], high=times[1], cursor=None if at is None else at[0])

    def shared_places(self, view: View, places: Floats) -> Floats:
        return places if view.axis == "ts" else self.run.step_positions(places)


class DeviceChart(TraceChart):
    """One quantity of all devices of a run."""

    fed_by = ("device/",)

    def __init__(self, quantity: Quantity, run: Callable[[], RunSeries], options: CurveOptions) -> None:
        super().__init__(options)
        self._quantity = quantity
        self._run = run
        self.floor, self.fixed_scale = quantity.floor, quantity.scale

    def note(self) -> str:
        """Say whose figures these are, where that is not the whole device, and of a finished run which."""
        devices = self._devices()
        notes = ["whole machine"] if devices == [HOST] else []
        if devices and all(uuid.startswith("cpu:") for uuid in devices):
            notes.append("this run's processes" if self._options.trained_on else "whole machine")
        if self._options.is_over:
            notes.append("peak" if self._quantity.is_peak else "mean of the run")
        return ", ".join(notes)

    def rows(self, view: View) -> int:
        run, own = self._run(), SampledByTime(self._run()).own_view(view)
        return max((run.device(uuid).rows_about("ts", own.low, own.high) for uuid in self._devices()), default=0)

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        # Samples come once a second, so half the places show as much, and all devices cost half as much a frame.
        return super().layers(view, bins // 2, palette)

    def traces(self, palette: QPalette) -> list[Trace]:
        run, trained_on = self._run(), self._options.trained_on
        found: list[Trace] = []
        for uuid in self._devices():
            series, rank = run.device(uuid), trained_on.index(uuid) if uuid in trained_on else None
            metric = replace(self._quantity.metric, name=self._quantity.column(series))
            if metric.name not in series.columns:
                continue
            label = "machine" if uuid == HOST else short_label(uuid, self._options.names.labels)
            colour = plot_colours(palette).muted if rank is None else rank_colour(rank, palette)
            # A rank's process on a CPU has no memory of its own to fill.
            total = None if rank is not None and uuid.startswith("cpu:") else series.last("memory_total_bytes")
            text = partial(_memory_text, total=total) if self._quantity is MEMORY else partial(_text, unit=metric.unit)
            key = uuid if rank is None else rank_key(rank)
            found.append(
                Trace(run, (series,), metric, label, colour, key, text, is_measured=True, place=SampledByTime(run))
            )
        return found

    def _devices(self) -> list[str]:
        return measured_devices(self._run(), self._options)

    def _reading(self, trace: Trace, view: View, _layers: Sequence[Layer] = ()) -> Reading:
        (series,), text, is_hidden = trace.series, "", self._options.is_hidden(trace.key)
        if not is_hidden and view.cursor is None and self._options.is_over:
            text = trace.text(series.peak(trace.name) if self._quantity.is_peak else series.mean(trace.name))
        elif not is_hidden:
            # At the newest sample of all: a card that is lost has no figure, whatever it said before.
            at = series.last("ts") if view.cursor is None else trace.own_view(view).cursor
            value = None if at is None else series.value_at(trace.name, "ts", at)
            text = UNKNOWN if at is None or value is None else trace.text(value) + self._beside(series, at)
        # Devices that no rank trains on have one colour.
        is_spare = trace.key in self._run().devices()
        return Reading(trace.colour, trace.label, text, key=trace.key, is_hidden=is_hidden, keeps_label=is_spare)

    def _beside(self, series: Series, at: float) -> str:
        """The rank's memory that spilled out of the GPU's, by Windows."""
        shared = (series.value_at("rank_shared_bytes", "ts", at) or 0.0) if self._quantity is MEMORY else 0.0
        return f" + {gibibytes(shared)} GiB shared" if shared >= NOTABLE_SHARED_BYTES else ""


def _text(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:.0f} {unit}"


def _memory_text(value: float | None, total: float | None) -> str:
    return UNKNOWN if value is None else memory_of(value, total) if total else f"{gibibytes(value)} GiB"


class DeviceWarnings:
    """Warnings of devices: why a clock is held down now."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, int]] = {}

    def take_samples(self, samples: Iterable[DeviceSample]) -> None:
        for sample in samples:
            reasons = [reason for reason in sample.throttle_reasons if reason != POWER_CAP]
            text, quiet = (reasons[0], -1) if reasons else self._held.pop(sample.uuid, ("", WARNING_HELD))
            if quiet < WARNING_HELD:
                self._held[sample.uuid] = text, quiet + 1

    def text(self, devices: Sequence[str], labels: Mapping[str, str]) -> str:
        """Return a line for each of these devices that is held down; of many, the first few."""
        lines = []
        for uuid in devices:
            if reason := self._held.get(uuid, ("", 0))[0]:
                lines.append(f"{short_label(uuid, labels)}: {reason[:1].lower()}{reason[1:].rstrip('.')}.")
        if len(lines) > MOST_WARNINGS:
            lines[MOST_WARNINGS:] = [f"{len(lines) - MOST_WARNINGS} more devices have a warning."]
        return "\n".join(lines)
