"""Chart of a benchmark: points with their spread over few positions, and the target as a line across."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyqtgraph
from PySide6.QtCore import QEvent, Qt

from app.run_data.pyramid import Floats
from app.style.palette import plot_colours, rank_colour
from core.measure.bench.charts import BenchChart, Curve

LINE: Final = 2.0
DOT: Final = 8
LINE_HEIGHT: Final = 18
# Names of curves above the plot.
IN_A_LINE: Final = 4
# Of the range, between the outermost points and the edges.
_ROOM: Final = 0.12


class BenchChartView(pyqtgraph.PlotWidget):
    """Draws one chart. Nothing in it moves: there is no more to see than what is shown.

    Args:
        chart: What is drawn; None: nothing yet.
    """

    def __init__(self, chart: BenchChart | None = None) -> None:
        super().__init__(background=None, enableMenu=False)
        self.chart = chart
        item = self.getPlotItem()
        item.ctrlMenu.setParent(self, item.ctrlMenu.windowFlags())  # else it is left behind
        for menu in item.ctrlMenu.actions():  # never shown, but made: nothing in it takes the wheel
            for action in menu.menu().actions():
                action.defaultWidget().setEnabled(False)
        item.hideButtons()
        item.setContentsMargins(6, 6, 14, 6)
        for side in ("left", "bottom"):
            item.getAxis(side).setZValue(item.getViewBox().zValue() - 1)  # the grid behind the points
        self.setMouseEnabled(x=False, y=False)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._draw()

    def show_chart(self, chart: BenchChart | None) -> None:
        if chart != self.chart:
            self.chart = chart
            self._draw()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "chart"):
            self._draw()

    def _draw(self) -> None:
        item, chart, colours = self.getPlotItem(), self.chart, plot_colours(self.palette())
        item.clear()
        self.setBackground(colours.ground)
        self.setAccessibleName("Chart" if chart is None else chart.title)
        for side in ("left", "bottom"):
            axis = item.getAxis(side)
            axis.setTextPen(colours.muted)
            axis.setPen(colours.frame)
            axis.setTickPen(colours.grid)
            axis.enableAutoSIPrefix(False)
        item.showGrid(x=False, y=True, alpha=0.25)
        if chart is None:
            return
        self._set_title(chart)
        item.setLabel("bottom", chart.x_label, color=colours.muted.name())
        item.setLabel("left", chart.y_label, color=colours.muted.name())
        item.setLogMode(x=False, y=False)  # values are put on it already, as error bars know no logarithm
        item.getAxis("left").setLogMode(y=chart.y_log)
        item.getAxis("bottom").setTicks(self._ticks(chart))
        for number, curve in enumerate(chart.curves):
            self._add_curve(number, curve, chart)
        if chart.target is not None:
            self._add_target(chart)
        self._fit(chart)

    def _set_title(self, chart: BenchChart) -> None:
        """The title, and below it the curves' names where there are several: over a plot they would cover points."""
        lines = [f"<b>{html.escape(chart.title)}</b>"]
        if len(chart.curves) > 1:
            signs = [
                f"<span style='color:{rank_colour(number, self.palette()).name()}'>■</span> {html.escape(curve.name)}"
                for number, curve in enumerate(chart.curves)
            ]
            lines += ["&nbsp;&nbsp; ".join(signs[at : at + IN_A_LINE]) for at in range(0, len(signs), IN_A_LINE)]
        item = self.getPlotItem()
        item.setTitle("<br>".join(lines), color=plot_colours(self.palette()).text.name(), size="9pt")
        height = LINE_HEIGHT * len(lines) + 8
        item.titleLabel.setMaximumHeight(height)
        item.layout.setRowFixedHeight(0, height)

    def _add_curve(self, number: int, curve: Curve, chart: BenchChart) -> None:
        colour = rank_colour(number, self.palette())
        x, y = _placed(curve.x, log=chart.x_log), _placed(curve.y, log=chart.y_log)
        if curve.low and len(curve.x) < 100:
            low, high = _placed(curve.low, log=chart.y_log), _placed(curve.high, log=chart.y_log)
            pen = pyqtgraph.mkPen(colour, width=1.2)
            bars = pyqtgraph.ErrorBarItem(x=x, y=y, top=high - y, bottom=y - low, beam=_beam(x), pen=pen)
            self.addItem(bars)
        dots = {"symbol": "o", "symbolSize": DOT, "symbolBrush": colour, "symbolPen": None} if curve.has_dots else {}
        self.plot(x, y, pen=pyqtgraph.mkPen(colour, width=LINE), name=curve.name, antialias=True, **dots)

    def _add_target(self, chart: BenchChart) -> None:
        colour = plot_colours(self.palette()).text
        assert chart.target is not None
        line = pyqtgraph.InfiniteLine(
            chart.target,
            angle=0,
            pen=pyqtgraph.mkPen(colour, width=1.4, style=Qt.PenStyle.DashLine),
            label=chart.target_label,
            labelOpts={"color": colour, "position": 0.04, "anchors": [(0, 0), (0, 0)]},
        )
        self.addItem(line)

    def _fit(self, chart: BenchChart) -> None:
        shown = [*(curve.x for curve in chart.curves), list(chart.x_ticks.values())]
        xs = [value for values in shown for value in _placed(values, log=chart.x_log)]
        ys = [
            v
            for curve in chart.curves
            for part in (curve.y, curve.low, curve.high)
            for v in _placed(part, log=chart.y_log)
        ]
        if chart.target is not None:
            ys.append(chart.target)
        if not chart.y_log and not _is_flat(chart):
            ys.append(0.0)
        self.setXRange(*_wider(xs), padding=0)
        low, high = _wider(ys)
        self.setYRange(0.0 if min(ys) == 0 else low, high, padding=0)

    @staticmethod
    def _ticks(chart: BenchChart) -> list[list[tuple[float, str]]] | None:
        if not chart.x_ticks:
            return None
        return [[(math.log10(value) if chart.x_log else value, text) for text, value in chart.x_ticks.items()]]


def _is_flat(chart: BenchChart) -> bool:
    """A curve over steps, in which a small slope is to be seen."""
    return not any(curve.has_dots for curve in chart.curves)


def _placed(values: Sequence[float], *, log: bool) -> Floats:
    array = np.asarray(values, dtype=float)
    return np.log10(np.maximum(array, 1e-12)) if log else array


def _beam(x: Floats) -> float:
    return 0.015 * (float(x.max() - x.min()) or 1.0)


def _wider(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = _ROOM * (high - low) or max(0.5, 0.05 * abs(high))
    return low - room, high + room
