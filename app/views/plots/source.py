"""Plot sources: layers for a view, and the values in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from PySide6.QtGui import QColor, QPalette

from app.run_data.series import AxisName, XAxis
from app.views.plots.drawing import Layer
from app.views.plots.scale import Scale


@dataclass(frozen=True, slots=True)
class View:
    """The part of a run that is shown.

    Attributes:
        axis: By step or by time.
        low, high: From where to where.
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
        label: Whose it is.
        text: The value with its unit, or an en dash.
        is_ring: Drawn as points, so its sign is a ring.
        smoothed: The value of the bold line at the crosshair; empty without one.
        key: Names its curve, where that can be hidden: "rank 3", "eval", "eval 3"; empty where it cannot.
        is_hidden: The curve is not drawn.
        is_best: The value is the best of its curve.
    """

    colour: QColor | None
    label: str
    text: str
    is_ring: bool = False
    smoothed: str = ""
    key: str = ""
    is_hidden: bool = False
    is_best: bool = False


class LayerSource(Protocol):
    def rows(self, view: View) -> int:
        """How many rows the longest curve has in a view: how fine its bins are follows from it."""

    def layers(self, view: View, bins: int, palette: QPalette) -> list[Layer]:
        """What is drawn, back to front, in at most about `bins` bins a curve."""


class PlotSource(LayerSource, Protocol):
    """What a plot shows. No widget: it turns a view into layers and into values."""

    @property
    def fed_by(self) -> tuple[str, ...]:
        """How the names of the series begin whose rows it shows ("rank", "eval")."""

    @property
    def floor(self) -> float | None:
        """A value that is always at the bottom; None for none."""

    @property
    def unit(self) -> str:
        """What tick labels carry: "s" (shown as ms where that is shorter), or nothing."""

    @property
    def fixed_scale(self) -> Scale | None:
        """The value range, if it never changes."""

    def readings(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """The values at the view's crosshair; the newest ones without a crosshair.

        Args:
            view: What is shown.
            palette: Gives the colours.
            layers: What `layers` gave for the view: the smoothed values are those of its lines.
        """


@runtime_checkable
class HidesCurves(Protocol):
    """A source whose curves can be hidden one by one."""

    def legend(self, view: View, palette: QPalette, layers: Sequence[Layer] = ()) -> list[Reading]:
        """What `readings` gives, and the curves that are hidden, each at its own place."""
