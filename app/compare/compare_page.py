"""Compare page: every metric of up to eight runs in one chart each, and the table of differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.charts.cards import VAL_LOSS, compared_cards
from app.charts.cards import Card as ChartCard
from app.charts.chart_cards import ChartCards
from app.charts.curve_controls import AxisBox, CardsButton, SmoothingSlider, fit_button, log_box
from app.charts.plot_frame import PlotFrame
from app.compare.compare_table import CompareTableView
from app.compare.run_overlay import OverlaidRun, RunOverlay, reported_columns
from app.plots.canvas import NO_VALUES
from app.plots.chart import Chart
from app.plots.curve_options import CurveOptions
from app.plots.source import PlotSource
from app.plots.ticks import time_of_day
from app.plots.time_axis import TimeAxis
from app.run_data.run_series import RunSeries
from app.run_data.series import AXES, AxisName
from app.settings import Settings
from app.widgets.build import icon_button, lay_column, lay_row, muted_label, page_title
from app.widgets.card import Card
from app.widgets.ruled_splitter import RuledSplitter
from core.compare.comparison import Comparison
from core.errors import RankdeckError
from core.formatting import duration
from core.metrics.metric import LOSS
from core.recipes.heroes import Hero

# The cards of comparisons are arranged for themselves, as those of a recipe are.
ARRANGEMENT: Final = "compare"


class ComparedCards(ChartCards):
    """Cards with a curve for each run.

    Args:
        runs: In the order of their colours; may be filled later.
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
        super().__init__(RunSeries, options, time_axis, settings, parent)
        self.open_recipe(ARRANGEMENT)

    def show_heroes(self, heroes: tuple[Hero, ...]) -> None:
        self._named, self._columns = heroes, None

    def _find_cards(self) -> list[ChartCard] | None:
        columns = reported_columns(self._runs)
        if columns == self._columns:
            return None
        self._columns = columns
        return compared_cards(*columns, self._named)

    def _source(self, card: ChartCard) -> PlotSource:
        return RunOverlay(self._runs, card, self._options)

    def _unit(self, key: str) -> str:
        return self.cards[key].unit


LEAST_WIDTH: Final = 610
# From which width on the smoothing slider has its label beside it.
LABELLED_WIDTH: Final = 700
LEAST_CHARTS: Final = 180
LEAST_TABLE: Final = 140


class ComparePage(QWidget):
    """The page for one comparison. It reads nothing: its controller gives it runs and their new points."""

    close_requested = Signal()

    def __init__(self, count: int, smoothing: int, settings: Settings | None = None) -> None:
        super().__init__()
        self.setAccessibleName("Compare runs")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.runs: list[OverlaidRun] = []
        self._count = count
        self.options = CurveOptions(smoothing=smoothing, mean=True)
        self.time_axis = TimeAxis(self)
        self._settings = settings
        self._axis = str((settings.values("compare") if settings is not None else {}).get("axis", "step"))
        self.cards = ComparedCards(self.runs, self.options, self.time_axis, settings, self)
        self.cards.made.connect(self._on_card_made)
        self.cards.grid.show_empty(f"Reading {count} runs…")
        self.table = CompareTableView()
        self._make_head()
        self._make_controls()
        self._lay_out()

    # --- from outside ------------------------------------------------------------------------------------

    def show_runs(self, comparison: Comparison, runs: Sequence[OverlaidRun]) -> None:
        self.runs[:] = runs
        self.cards.show_heroes(comparison.heroes)
        self.copy.setEnabled(True)
        self.cards.grid.show_empty("None of these runs has reported a metric yet.")
        self.show_comparison(comparison)
        self.draw_new()

    def show_comparison(self, comparison: Comparison) -> None:
        for run, label in zip(self.runs, comparison.labels, strict=True):
            run.label = label
        self.table.show_comparison(comparison)

    def show_notes(self, notes: Sequence[str]) -> None:
        self.notes.setText("\n".join(notes))
        self.notes.setVisible(bool(notes))

    def show_failure(self, error: RankdeckError) -> None:
        self.cards.grid.show_empty("")
        self.show_notes([f"{error.title.rstrip('.')}.", error.cause, error.next_step])

    def draw_new(self) -> None:
        self.cards.follow()
        for chart in self.charts():
            chart.expect_new()
        self._show_axis()
        extent = self._extent(self.time_axis.name)
        if extent is not None:
            self.time_axis.set_extent(*extent)
        for chart in self.charts():
            chart.draw_new()

    def charts(self) -> list[Chart]:
        return self.cards.charts()

    def set_axis(self, axis: str) -> None:
        """Takes an `AxisName`, and remembers it for the next comparison; time is that since each run's first step."""
        self._axis = axis
        if self._settings is not None:
            self._settings.set_values("compare", {"axis": axis})
        self._show_axis()

    def _show_axis(self) -> None:
        offered = self._axes()
        chosen: AxisName = next((name for name in offered if name == self._axis), "step")
        if chosen != self.time_axis.name:
            self.time_axis.show_axis(chosen, self._extent(chosen))
        self.axis_box.offer(offered, chosen)

    def _axes(self) -> list[AxisName]:
        found = {name for run in self.runs for name in run.series.axes()}
        return [name for name in AXES if name in found or name == "step"]

    # --- building ----------------------------------------------------------------------------------------

    def _make_head(self) -> None:
        self.title = page_title("Compare")
        self.about = muted_label(f"{self._count} runs, mean over devices", wraps=False)
        self.copy = QPushButton("Copy ta&ble")
        self.copy.setToolTip("Copy the table, for a spreadsheet (Ctrl+C)")
        self.copy.clicked.connect(self.table.copy_text)
        self.close_button = icon_button("close", "Close the comparison (Esc)", self.close_requested.emit, "Close")
        self.close_button.setAutoRaise(True)
        self.copy.setEnabled(False)
        self.notes = muted_label()
        self.notes.setTextFormat(Qt.TextFormat.PlainText)
        self.notes.hide()

    def _make_controls(self) -> None:
        self.smoothing = SmoothingSlider(self.options.smoothing)
        self.smoothing.strength_changed.connect(self.cards.set_smoothing)
        self.axis_box = AxisBox()
        self.axis_box.axis_chosen.connect(self.set_axis)
        self.log_box = log_box()
        self.log_box.toggled.connect(self._on_log_toggled)
        self.cards_button = CardsButton(self.cards)
        self.fit_button = fit_button()
        self.fit_button.clicked.connect(self.cards.fit)

    def _lay_out(self) -> None:
        head = Card()
        row = lay_row(None, self.title, self.about, None, self.copy, self.close_button, spacing=8)
        lay_column(head, row, self.notes, spacing=4, margins=(16, 8, 8, 8))
        controls = lay_row(
            None, self.smoothing, self.axis_box, self.log_box, self.cards_button, None, self.fit_button,
            spacing=12, margins=(4, 0, 4, 0),
        )  # fmt: skip
        charts = QWidget()
        charts.setMinimumHeight(LEAST_CHARTS)
        lay_column(charts, controls, self.cards.grid, spacing=8, grow=self.cards.grid)
        self.table.setMinimumHeight(LEAST_TABLE)
        self.parts = RuledSplitter(Qt.Orientation.Vertical)
        self.parts.addWidget(charts)
        self.parts.addWidget(self.table)
        self.parts.setChildrenCollapsible(False)
        self.parts.setStretchFactor(0, 1)
        self.table.rows_changed.connect(self._share_room)
        lay_column(self, head, self.parts, spacing=8, margins=(8, 8, 8, 8), grow=self.parts)

    def _share_room(self) -> None:
        room = self.parts.height()
        if self.table.view.rowCount():
            below = max(LEAST_TABLE, min(self.table.needed_height, room // 2))
            self.parts.setSizes([room - below, below])

    def _extent(self, axis: AxisName) -> tuple[float, float] | None:
        found = [extent for run in self.runs if (extent := run.extent(axis)) is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None

    def _where(self, at: float) -> str:
        texts: dict[AxisName, Callable[[], str]] = {
            "step": lambda: f"step {at:,.0f}",
            "time": lambda: f"{duration(at)} since the first step",
            "clock": lambda: time_of_day(at),
            "tokens": lambda: f"{round(at):,} tokens",
            "epoch": lambda: f"epoch {at:.2f}",
        }
        return texts[self.time_axis.name]()

    # --- what happens ------------------------------------------------------------------------------------

    def _on_card_made(self, frame: PlotFrame) -> None:
        frame.chart.where = self._where
        frame.chart.empty_text = NO_VALUES
        source = frame.chart.source
        if isinstance(source, RunOverlay) and source.name in (LOSS, VAL_LOSS):
            frame.chart.set_log(self.log_box.isChecked())

    def _on_log_toggled(self, on: bool) -> None:
        for key in (LOSS, VAL_LOSS):
            if key in self.cards.frames:
                self.cards.frames[key].chart.set_log(on)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_requested.emit()
        elif event.matches(QKeySequence.StandardKey.Copy):
            self.table.copy_text()
        else:
            super().keyPressEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def minimumSizeHint(self) -> QSize:
        return QSize(LEAST_WIDTH, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.smoothing.label.setVisible(self.width() >= LABELLED_WIDTH)
