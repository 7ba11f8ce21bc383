"""Chart of one run: a curve for each rank or their mean, and its evaluations, a curve for each that evaluates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from PySide6.QtGui import QPalette

from app.charts.cards import Card
from app.plots.curve_options import CurveOptions, rank_key
from app.plots.source import View
from app.plots.traces import Trace, TraceChart, figure_text, rows_in
from app.run_data.run_series import RunSeries
from app.style.palette import plot_colours, rank_colour
from core.metrics.column_group import EVAL_GROUP
from core.metrics.metric import metric

MEAN: Final = "mean"
# Whose curve it is where they all report the same.
ALL: Final = "all devices"
# The key of the evaluations; "eval 1" where each device has its own.
EVAL: Final = "eval"


class RunChart(TraceChart):
    """The metrics of a card."""

    def __init__(self, card: Card, run: Callable[[], RunSeries], options: CurveOptions) -> None:
        super().__init__(options)
        self._card = card
        self._run = run
        self.floor = metric(card.column).floor
        self.fed_by = ("rank",) * bool(card.steps) + (EVAL_GROUP,) * bool(card.evals)

    @property
    def name(self) -> str:
        run, names = self._run(), self._card.steps
        groups = [run.rank(rank) for rank in self._options.offered(run)]
        return next((name for name in names if any(name in s.columns for s in groups)), names[0])

    def note(self) -> str:
        return self._options.note(self._run())

    def rows(self, view: View) -> int:
        run = self._run()
        series = [run.clock()] if self._card.steps else run.evaluations().values()
        return max((rows_in(one, view) for one in series), default=0)

    def traces(self, palette: QPalette) -> list[Trace]:
        steps = self._of_ranks(palette) if self._card.steps else []
        return steps + (self._of_evaluations(palette) if self._card.evals else [])

    def _of_ranks(self, palette: QPalette) -> list[Trace]:
        run, options, shown = self._run(), self._options, metric(self.name)
        offered, ranks = options.offered(run), options.ranks(run)
        text, plain = plot_colours(palette).text, figure_text(shown, with_unit=False)
        visible = tuple(run.rank(rank) for rank in ranks)
        is_shared = run.is_shared(shown.name, offered)
        if is_shared or options.mean:
            label = ALL if is_shared else MEAN
            found = [Trace(run, visible, shown, label, text, text=plain, is_shared=is_shared)] if ranks else []
        else:
            own = figure_text(shown) if len(offered) == 1 else plain
            found = [
                Trace(run, (run.rank(rank),), shown, options.names.short(rank), rank_colour(rank, palette),
                      rank_key(rank), own)
                for rank in offered
            ]  # fmt: skip
            if len(ranks) > 1 and not shown.is_rate:
                found.insert(0, Trace(run, visible, shown, MEAN, None, text=plain))
        if shown.is_rate and len(offered) > 1 and ranks:
            every = tuple(run.rank(rank) for rank in run.ranks() if not options.is_hidden(rank_key(rank)))
            found.insert(0, Trace(run, every, shown, "", None, text=figure_text(shown), is_sum=True))
        return found

    def _of_evaluations(self, palette: QPalette) -> list[Trace]:
        """Return one curve for all ranks; where they evaluate by themselves, one each or their mean."""
        run, options, shown = self._run(), self._options, metric(self._card.evals)
        known = {rank: series for rank, series in run.evaluations().items() if shown.name in series.columns}
        shown_ranks = [rank for rank in options.ranks(run) if rank in known]
        best = run.best_evaluation(shown.name) if self._card.steps else None
        if best is not None and best[0].rows < 2:  # a single one is not marked
            best = None
        column = "evaluation" if self._card.steps else shown.name
        if len(known) < 2 or options.mean:
            series = tuple(known.values() if len(known) == 1 else [known[rank] for rank in shown_ranks])
            colour = plot_colours(palette).eval
            one = Trace(run, series, shown, EVAL, colour, EVAL, layer_label=column, is_ring=True, best=best)
            return [one] if series else []
        return [
            Trace(run, (known[rank],), shown, f"{EVAL} {options.names.short(rank)}", rank_colour(rank, palette),
                  f"{EVAL} {rank}", layer_label=f"{column} {options.names.short(rank)}", is_ring=True, best=best)
            for rank in shown_ranks
        ]  # fmt: skip
