"""Time axis that all plots of a run share: the part that is shown, and the place of the crosshair."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, Signal

from app.plots.view_box import PlotView
from app.run_data.pyramid import Floats
from app.run_data.run_series import COUNTERS, RunSeries
from app.run_data.series import AXES, AxisName, XAxis

SHORTEST: Final = {"step": 2.0, "ts": 0.02}
# Of the highest step: less than that cannot be told apart in 64 bits.
LEAST_SHARE: Final = 1e-14


class TimeAxis(QObject):
    """Steps, or wall time in Unix seconds: a view that is never painted, to which those of all plots are linked.

    `name` is what the axis says of them: tokens and epochs are another scale of steps (`counter`), the time of day
    one of seconds.

    While it is *fitted* it shows everything and follows new points. A part that a person chose stays where it is
    until they fit it again.

    Signals:
        cursor_changed: The crosshair moved, came or went.
    """

    axis_changed = Signal()
    cursor_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.axis: XAxis = "step"
        self.name: AxisName = "step"
        self.counter: tuple[Floats, Floats] | None = None
        self.extent = (0.0, SHORTEST["step"])
        self.is_fitted = True
        self.cursor: float | None = None
        self._leader = PlotView()
        self._views = [self._leader]
        self._leader.sigRangeChangedManually.connect(self._on_moved_by_hand)
        self._limit(*self.extent)
        self._show(*self.extent)

    def link(self, view: PlotView) -> None:
        if view in self._views:
            return
        self._views.append(view)
        self._limit(*self.extent)
        view.setXLink(self._leader)
        view.sigRangeChangedManually.connect(self._on_moved_by_hand)

    def unlink(self, view: PlotView) -> None:
        """Leaves out a plot that goes or is hidden: hundreds of hidden ones would be told of each move."""
        if view not in self._views:
            return
        self._views.remove(view)
        view.setXLink(None)

    @property
    def low(self) -> float:
        return float(self._leader.viewRange()[0][0])

    @property
    def high(self) -> float:
        return float(self._leader.viewRange()[0][1])

    @property
    def span(self) -> float:
        return self.high - self.low

    def set_extent(self, low: float, high: float) -> None:
        extent = (low, max(high, low + self._shortest(low)))
        if extent != self.extent:
            self.extent = extent
            self._limit(*extent)
        if self.is_fitted:
            self._show(*self.extent)

    def show_range(self, low: float, high: float) -> None:
        """Shows a part, kept within the extent; all of it means fitted."""
        self._show(low, high)
        self._on_moved_by_hand()

    def fit(self) -> None:
        self.is_fitted = True
        self._show(*self.extent)

    def forget(self) -> None:
        self.is_fitted = True
        self.set_extent(0.0, 0.0)

    def set_cursor(self, value: float | None) -> None:
        if value != self.cursor:
            self.cursor = value
            self.cursor_changed.emit()

    def switch(self, name: AxisName, run: RunSeries) -> None:
        """Switches the axis; a chosen part stays the same part of the run."""
        axis = AXES[name]
        if name == self.name:
            return
        part = None
        if not self.is_fitted:
            turned = run.times_of(self.low, self.high) if axis == "ts" else run.steps_of(self.low, self.high)
            part = (self.low, self.high) if axis == self.axis else turned
        self.count(name, run)
        self.show_axis(name, run.extent(axis), part)

    def count(self, name: AxisName, run: RunSeries) -> None:
        """Takes the run's count so far, for an axis of tokens or epochs."""
        self.counter = run.counter(name) if name in COUNTERS else None

    def show_axis(
        self, name: AxisName, extent: tuple[float, float] | None, part: tuple[float, float] | None = None
    ) -> None:
        """Switches the axis and shows `part` of the extent, or all of it."""
        self.is_fitted = True
        self.name, self.axis, self.cursor = name, AXES[name], None
        self.set_extent(*(extent or (0.0, 0.0)))
        if part is not None:
            self.show_range(*part)
        self.axis_changed.emit()

    def _show(self, low: float, high: float) -> None:
        self._leader.setRange(xRange=(low, high), padding=0, disableAutoRange=False)

    def _limit(self, low: float, high: float) -> None:
        shortest = min(self._shortest(low), high - low)
        for view in self._views:
            view.setLimits(xMin=low, xMax=high, minXRange=shortest)

    def _shortest(self, low: float) -> float:
        shortest = 0.001 if self.name == "epoch" and self.counter is None else SHORTEST[self.axis]
        return max(shortest, LEAST_SHARE * abs(low))

    def _on_moved_by_hand(self, *_: object) -> None:
        first, last = self.extent
        self.is_fitted = self.span >= (last - first) * (1 - 1e-9)
