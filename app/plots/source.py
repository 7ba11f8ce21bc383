"""Plot sources: layers for a view, and the values in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Final, Protocol

from PySide6.QtGui import QColor, QPalette

from app.plots.drawing import Layer, cut
from app.plots.scale import Scale
from app.run_data.series import AxisName, XAxis


@dataclass(frozen=True, slots=True)
class View:
    """The part of a run that is shown.

    Attributes:
        cursor: Where the crosshair stands; None without one.
        name: What the axis says.
    """

    axis: XAxis
    low: float
    high: float
    cursor: float | None = None
    name: AxisName = "step"


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of a readout.

    Attributes:
        colour: Of its curve; None for a value that has none (a sum).
        text: The value with its unit, or an en dash.
        is_ring: Drawn as points, so its sign is a ring.
        smoothed: The value of the bold line at the crosshair; empty without one.
        key: Names its curve, where that can be hidden: "rank 3", "eval", "eval 3"; empty where it cannot.
        keeps_label: The label stays where room is scarce, since the colour is that of other curves too.
    """

    colour: QColor | None
    label: str
    text: str
    is_ring: bool = False
    smoothed: str = ""
    key: str = ""
    is_hidden: bool = False
    is_best: bool = False
    keeps_label: bool = False


class PlotSource(Protocol):
    """Source of a plot, not a widget: turns a view into layers and values."""

    def rows(self, view: View) -> int:
        """Number of rows of the longest curve in a view: the width of its bins follows from it."""

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """Layers to draw, back to front, in at most about `bins` bins a curve."""

    def note(self) -> str:
        """The drawn part of the run, or whose figures they are; empty where that is plain."""

    @property
    def fed_by(self) -> tuple[str, ...]:
        """First letters of the names of the series that it shows ("rank", "eval")."""

    @property
    def floor(self) -> float | None:
        """A value that is always at the bottom; None for none."""

    @property
    def unit(self) -> str:
        """Unit of tick labels: "s" (shown as ms where that is shorter), or nothing."""

    @property
    def fixed_scale(self) -> Scale | None:
        """The value range, if it never changes."""

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """Values at the view's crosshair, or the newest; `layers` are those of the view, which have its lines."""

    def legend(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """`readings` with the hidden curves, each at its own place."""


# What is made on each side, as a share of the view: more would make the one frame late that makes it.
MARGIN: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Made:
    """Layers, and the view and bins of which they were made.

    Attributes:
        layers: Of a part that is as wide as what was shown, or wider.
        bins: How many bins what was shown had.
        octave: See `_octave`.
    """

    layers: list[Layer]
    part: View
    source: PlotSource
    bins: int
    octave: int

    def covers(self, view: View) -> bool:
        return self.part.axis == view.axis and self.part.low <= view.low and view.high <= self.part.high


class WideLayers:
    """The newest layers, with bins of the same width and on the same grid as those of the view.

    A first picture, and one of new points, has no more; only when the view has moved is a wider part made.
    """

    def __init__(self) -> None:
        self._made: _Made | None = None

    def forget(self) -> None:
        """Drops the layers: the source has other points, or draws them in other colours."""
        self._made = None

    def of(
        self, source: PlotSource, view: View, bins: int, palette: QPalette, extent: tuple[float, float]
    ) -> list[Layer]:
        """Return `source.layers` of a view, and perhaps a bin more on both sides; nothing beyond `extent` is made."""
        rows = source.rows(view)
        octave = _octave(rows, bins)
        made = self._made
        if made is None or not made.covers(view) or (made.source, made.bins, made.octave) != (source, bins, octave):
            part = view if made is None or made.source is not source else _wider(view, extent)
            share = source.rows(part) / rows if rows else 1.0
            layers = source.layers(part, max(bins, ceil(bins * share)), palette)
            made = self._made = _Made(layers, part, source, bins, octave)
        if (made.part.low, made.part.high) == (view.low, view.high):
            return made.layers
        return [_inside(layer, view) for layer in made.layers]


def _octave(rows: int, bins: int) -> int:
    """Return the same number for views whose bins are of the same width, also where a source halves their number."""
    return ceil(log2(rows / bins)) if rows else 0


def _wider(view: View, extent: tuple[float, float]) -> View:
    room = MARGIN * (view.high - view.low)
    low, high = max(view.low - room, extent[0]), min(view.high + room, extent[1])
    return replace(view, low=min(low, view.low), high=max(high, view.high))


def _inside(layer: Layer, view: View) -> Layer:
    """Return the part of a layer in view, and one more position on both sides."""
    first = max(0, int(layer.x.searchsorted(view.low, "left")) - 1)
    return cut(layer, slice(first, int(layer.x.searchsorted(view.high, "right")) + 1))
