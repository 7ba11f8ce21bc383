"""Cards of compared runs: a chart for each metric that any of them reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtWidgets import QWidget

from app.run_data.run_series import RunSeries
from app.settings import Settings
from app.state.chart_cards import Card, compared_cards
from app.views.plots.chart_cards import ChartCards
from app.views.plots.curve_options import CurveOptions
from app.views.plots.run_overlay import OverlaidRun, RunOverlay, reported_columns
from app.views.plots.source import PlotSource
from app.views.plots.time_axis import TimeAxis
from core.recipes.heroes import Hero

# The cards of comparisons are arranged for themselves, as those of a recipe are.
ARRANGEMENT: Final = "compare"


class ComparedCards(ChartCards):
    """As the cards of one run, with a curve for each run.

    Args:
        runs: In the order of their colours; may be filled later.
        options: Shared by the charts.
        time_axis: Shared by them too.
        settings: Where the arrangement is kept; None: nowhere.
        parent: Qt owner.
    """

    def __init__(
        self,
        runs: Sequence[OverlaidRun],
        options: CurveOptions,
        time_axis: TimeAxis,
        settings: Settings | None,
        parent: QWidget,
    ) -> None:
        self._runs = runs
        self._named: tuple[Hero, ...] = ()
        super().__init__(RunSeries, options, time_axis, None, settings, parent)
        self.grid.is_made = self.frames.__contains__
        self.open_recipe(ARRANGEMENT)

    def show_heroes(self, heroes: tuple[Hero, ...]) -> None:
        """What the recipe of all runs names: their cards come first."""
        self._named, self._columns = heroes, None

    def unread(self) -> list[str]:
        sources = (self.frames[key].chart.source for key in self.shown if key in self.frames)
        return [source.name for source in sources if isinstance(source, RunOverlay) and not source.is_ready]

    def _find_cards(self) -> list[Card] | None:
        columns = reported_columns(self._runs)
        if columns == self._columns:
            return None
        self._columns = columns
        return compared_cards(*columns, self._named)

    def _source(self, card: Card) -> PlotSource:
        return RunOverlay(self._runs, card, self._options)
