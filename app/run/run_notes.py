"""Run notes: model size, memory, time, all-reduce, batch shares and synchronisation of a run, a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.config.mode import Mode
from core.formatting import megabytes, memory_size, number, short_duration
from core.measure.estimate.history import EVENT as MEMORY
from core.measure.estimate.history import device_peak

if TYPE_CHECKING:
    from app.run_data.metrics_batch import Event
    from app.run_data.run_series import RunSeries

# The mean time is that of up to 256 newest steps, of five at least; those in which buffers are made do not count.
NEWEST: Final = 256
ENOUGH: Final = 5
SETTLING: Final = 3
# Kinds of alerts about what a person should do while the run goes, the worse ones first.
PRESSING: Final = ("hang", "disk_low", "memory_spill")
# Kinds of alerts that say why a run ends by itself.
STOPPING: Final = ("early_stop", "disk_full")
KINDS: Final = ("launch", "model", "exchange", "balance", "synchronised", "straggler")


class RunNotes:
    """Keeps the newest event of each kind, so that a run's many events are looked at once."""

    def __init__(self) -> None:
        self._newest: dict[str, Event] = {}
        self._alerts: dict[str, Event] = {}
        self._peak = 0
        self._seen = 0
        self._first: Event | None = None

    def of(self, run: RunSeries) -> tuple[str, ...]:
        """Return notes on the newest attempt, a sentence each."""
        events = run.events
        first = events[0] if events else None
        # Another run, or its older events came afterwards.
        if first is not self._first or len(events) < self._seen:
            self._newest, self._alerts, self._peak, self._seen, self._first = {}, {}, 0, 0, first
        for event in events[self._seen :]:
            self._take(event)
        self._seen = len(events)
        newest, launch = self._newest, self._newest.get("launch", {})
        parts = (
            _model(newest.get("model", {})),
            _memory(launch.get("predicted_bytes"), self._peak),
            _time(launch, run),
            str(newest.get("exchange", {}).get("words") or ""),
            _shares(newest.get("balance", {})),
            _straggler(newest.get("straggler", {})),
            _meetings(newest.get("synchronised", {}))
            if launch.get("mode", Mode.INDEPENDENT) == Mode.INDEPENDENT
            else "",
            *map(str, launch.get("notes") or ()),
        )
        return tuple(part for part in parts if part)

    @property
    def slowed(self) -> Event:
        """The alert about a device that the others wait for now, or an empty one."""
        return self._alerts.get("straggler", {}) if self._newest.get("straggler", {}).get("ranks") else {}

    @property
    def pressing(self) -> Event:
        """The alert about a problem that keeps the run from its work now or soon, or an empty one."""
        return next((self._alerts[kind] for kind in PRESSING if kind in self._alerts), self.slowed)

    @property
    def stopping(self) -> Event:
        """The alert that says why the run ends by itself, or an empty one."""
        return next((self._alerts[kind] for kind in STOPPING if kind in self._alerts), {})

    def _take(self, event: Event) -> None:
        kind = str(event.get("event"))
        if kind == "launch":
            self._newest = {name: self._newest[name] for name in self._newest if name == "model"}
            self._alerts, self._peak = {}, 0
        about = str(event.get("kind"))
        if kind == "alert":
            self._alerts[about] = event
        elif kind == "alert_over":
            self._alerts.pop(about, None)
        if kind == MEMORY:
            self._peak = max(self._peak, device_peak(event) or 0)
        if kind in KINDS:
            self._newest[kind] = event


def _model(event: Event) -> str:
    parameters, trainable = event.get("parameters"), event.get("trainable")
    if not isinstance(parameters, int):
        return ""
    some = f", {trainable:,} of them trainable" if isinstance(trainable, int) and trainable != parameters else ""
    return f"The model has {parameters:,} parameters{some}."


def _memory(predicted: object, peak: int) -> str:
    parts = [f"{memory_size(predicted)} predicted"] if isinstance(predicted, int) else []
    parts += [f"{memory_size(peak)} measured"] if peak else []
    if isinstance(predicted, int) and peak:
        parts.append(f"error {100 * (predicted / peak - 1):+.1f} %")
    return f"Highest peak memory of a device: {', '.join(parts)}." if parts else ""


def _time(launch: Event, run: RunSeries) -> str:
    """Predicted and achieved seconds of a step, and speed-up."""
    predicted_s, predicted, one = (
        value if isinstance(value := launch.get(name), int | float) else None
        for name in ("predicted_step_s", "predicted_speedup", "one_samples_per_s")
    )
    if predicted_s is None:
        return ""
    step_s, rate = _achieved(run)
    parts = [f"Time of a step: {short_duration(predicted_s)} predicted"]
    if step_s:
        parts.append(f"{short_duration(step_s)} achieved")
        parts.append(f"error {100 * (predicted_s / step_s - 1):+.1f} %")
    text = f"{', '.join(parts)}."
    if predicted is None or launch.get("mode") == Mode.SINGLE:
        return text
    achieved = f", {number(rate / one, 2)} × achieved" if rate and one else ""
    return f"{text} Speed-up over one device: {number(predicted, 2)} × predicted{achieved}."


def _achieved(run: RunSeries) -> tuple[float | None, float | None]:
    """Return the mean seconds of the newest steps and the samples a second of all ranks; None while too few."""
    # Here: the window is painted before it is loaded.
    import numpy as np

    means: list[float] = []
    rates: list[float] = []
    for rank in run.ranks():
        series = run.rank(rank)
        columns = [series.columns.get(name) for name in ("step_time_s", "samples_per_s")]
        first = max(SETTLING, series.rows - NEWEST)
        if None in columns or series.rows - first < ENOUGH:
            return None, None
        seconds, speeds = (column.read(first, series.rows) for column in columns if column is not None)
        known = ~np.isnan(seconds) & ~np.isnan(speeds)
        total = float(seconds[known].sum())
        if total <= 0:
            return None, None
        means.append(total / int(known.sum()))
        rates.append(float((seconds[known] * speeds[known]).sum()) / total)
    return (sum(means) / len(means), sum(rates)) if means else (None, None)


def _shares(event: Event) -> str:
    return f"Batch shares by measured speed: {event['text']}." if event.get("text") else ""


def _straggler(event: Event) -> str:
    return str(event.get("text") or "") if event.get("ranks") else ""


def _meetings(event: Event) -> str:
    """Read the line at the run's end; until then the sync interval and the step time say it."""
    rounds, size, wait_s = event.get("rounds"), event.get("bytes"), event.get("wait_s")
    if isinstance(rounds, int) and isinstance(size, int | float) and isinstance(wait_s, int | float):
        times = "once" if rounds == 1 else f"{rounds:,} times"
        return f"Synchronised {times}: {megabytes(size)} sent per device, {wait_s:.3g} s spent waiting."
    return ""
