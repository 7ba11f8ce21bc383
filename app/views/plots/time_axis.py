"""Time axis that all plots of a run share: the part that is shown, and the place of the crosshair."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, Signal

from app.run_data.run_series import RunSeries
from app.run_data.series import XAxis

SHORTEST: Final = {"step": 2.0, "ts": 0.02}


class TimeAxis(QObject):
    """Steps, or wall time in Unix seconds.

    While it is *fitted* it shows everything and follows new points. A part that a person chose stays where it is
    until they fit it again.

    Signals:
        range_changed: `low` and `high` are others now, by a person (`True`) or by new points (`False`).
        axis_changed: Steps ↔ time.
        cursor_changed: The crosshair moved, came or went.
    """

    range_changed = Signal(bool)
    axis_changed = Signal()
    cursor_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.axis: XAxis = "step"
        self.low, self.high = 0.0, 1.0
        self.extent = (0.0, 1.0)
        self.is_fitted = True
        self.cursor: float | None = None

    @property
    def span(self) -> float:
        """How much is shown."""
        return self.high - self.low

    def set_extent(self, low: float, high: float) -> None:
        """All there is, from the first point to the last; shown at once while fitted."""
        self.extent = (low, max(high, low + SHORTEST[self.axis]))
        if self.is_fitted:
            self._set(*self.extent, by_person=False)

    def show_range(self, low: float, high: float) -> None:
        """Shows a part, kept within what there is; all of it means fitted."""
        first, last = self.extent
        span = min(max(high - low, SHORTEST[self.axis]), last - first)
        middle = (low + high) / 2
        low = min(max(middle - span / 2, first), last - span)
        self.is_fitted = span >= (last - first) * (1 - 1e-9)
        self._set(low, low + span, by_person=True)

    def zoom(self, factor: float, around: float | None = None) -> None:
        """Shows `factor` times as much, with `around` (or the middle) staying where it is."""
        fixed = (self.low + self.high) / 2 if around is None else around
        span = max(self.span * factor, SHORTEST[self.axis])
        share = (fixed - self.low) / self.span
        self.show_range(fixed - share * span, fixed + (1 - share) * span)

    def pan(self, share: float) -> None:
        """Moves by a share of what is shown."""
        self.show_range(self.low + share * self.span, self.high + share * self.span)

    def fit(self) -> None:
        """Shows everything, and follows."""
        self.is_fitted = True
        self._set(*self.extent, by_person=True)

    def forget(self) -> None:
        """Nothing is shown any more: the next run begins from an empty axis."""
        self.is_fitted = True
        self.extent = (0.0, SHORTEST[self.axis])
        self._set(*self.extent, by_person=False)

    def set_cursor(self, value: float | None) -> None:
        """Puts the crosshair somewhere, or takes it away."""
        if value != self.cursor:
            self.cursor = value
            self.cursor_changed.emit()

    def switch(self, axis: XAxis, run: RunSeries) -> None:
        """Steps ↔ time; a part that was chosen stays the same part of the run."""
        if axis == self.axis:
            return
        turned = run.times_of(self.low, self.high) if axis == "ts" else run.steps_of(self.low, self.high)
        self.axis, self.cursor = axis, None
        extent = run.extent(axis)
        low, high = extent if extent is not None else (0.0, 1.0)
        self.extent = (low, max(high, low + SHORTEST[axis]))
        if self.is_fitted or turned is None:
            self.is_fitted = True
            self.low, self.high = self.extent
        else:
            self.show_range(*turned)
        self.axis_changed.emit()
        self.range_changed.emit(True)

    def _set(self, low: float, high: float, by_person: bool) -> None:
        if (low, high) != (self.low, self.high):
            self.low, self.high = low, high
            self.range_changed.emit(by_person)
