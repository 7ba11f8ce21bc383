"""Cards of the shown run: their charts, their order, and which are hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from app.charts.card_grid import CardGrid
from app.charts.cards import (
    LOSS_CARD,
    STEP_TIME_CARD,
    THROUGHPUT_CARD,
    Arrangement,
    Card,
    cards_for,
)
from app.charts.device_chart import QUANTITIES, DeviceChart, device_cards, measured_devices
from app.charts.plot_frame import PlotFrame
from app.charts.run_chart import RunChart
from app.charts.step_time import StepTime
from app.plots.chart import Chart
from app.plots.curve_options import CurveOptions
from app.plots.source import PlotSource
from app.plots.time_axis import TimeAxis
from app.run_data.run_series import RunSeries
from app.settings import Settings
from core.recipes.heroes import Hero

# Cards that stay made whatever run is shown; nearly every run has them.
ALWAYS: Final = {card.key: card for card in (LOSS_CARD, THROUGHPUT_CARD, STEP_TIME_CARD)}
# Names of which one without any value has no card.
MOST_CHECKED: Final = 64


class ChartCards(QObject):
    """Makes the cards in a `CardGrid`; their arrangement is remembered for each recipe."""

    made = Signal(object)

    def __init__(
        self,
        run: Callable[[], RunSeries],
        options: CurveOptions,
        time_axis: TimeAxis,
        settings: Settings | None,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._run = run
        self._options = options
        self._time_axis = time_axis
        self._settings = settings
        self._recipe = ""
        self._heroes: tuple[Hero, ...] = ()
        self._columns: object = None
        self._blank = [set[str](), set[str](), set[str]()]
        self._valued = [set[str](), set[str](), set[str]()]
        self._found: list[str] = []
        self.cards: dict[str, Card] = dict(ALWAYS)
        self.shown: list[str] = []
        self.arrangement = Arrangement()
        self.frames: dict[str, PlotFrame] = {}
        self.grid = CardGrid(self.frame)

    def frame(self, key: str) -> PlotFrame:
        if key not in self.frames:
            card = self.cards[key]
            chart = Chart(self._source(card), self._time_axis, f"{card.title} plot")
            frame = self.frames[key] = PlotFrame(card.title, chart, parent=self.grid.body)
            frame.show_title(card.title, self._unit(key))
            # The grid shows it, while it has a place there.
            frame.hide()
            frame.readout.tab_stop_changed.connect(self.grid.chain_tabs)
            frame.readout.setMinimumHeight(frame.more.sizeHint().height())
            frame.enlarge_toggled.connect(partial(self._on_enlarge_toggled, key))
            frame.hide_chosen.connect(partial(self._on_hide_chosen, key))
            frame.title.setCursor(Qt.CursorShape.OpenHandCursor)
            frame.title.setToolTip("Drag to move this card, or press Ctrl+Shift+← or →")
            frame.dragged.connect(partial(self._on_dragged, key))
            for keys, by in (("Ctrl+Shift+Left", -1), ("Ctrl+Shift+Right", 1)):
                shortcut = QShortcut(QKeySequence(keys), frame, partial(self._on_moved, key, by))
                shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            frame.entry_chosen.connect(partial(self._on_entry_chosen, key))
            self.made.emit(frame)
        return self.frames[key]

    def charts(self) -> list[Chart]:
        return [self.frames[key].chart for key in self.shown if key in self.frames]

    def open_recipe(self, recipe: str, heroes: Sequence[Hero] = ()) -> None:
        """Takes the arrangement that was left for a recipe, and its heroes."""
        if recipe != self._recipe:
            self._recipe, self._heroes, self._columns = recipe, tuple(heroes), None
            values = self._settings.values(f"cards/{recipe}") if self._settings is not None and recipe else {}
            self.arrangement = Arrangement.read(values)
            self._show()

    def follow(self) -> None:
        """Shows a card for each metric that the run has by now."""
        found_cards = self._find_cards()
        gone: set[str] = set()
        if found_cards is not None:
            found = {card.key: card for card in found_cards}
            gone = self.frames.keys() - found.keys() - ALWAYS.keys()
            self.cards, self._found = ALWAYS | found, list(found)
        self._show()
        for frame in [self.frames.pop(key) for key in gone]:
            frame.chart.close_plot()
            frame.deleteLater()
        self.show_titles()

    def show_titles(self) -> None:
        """Updates titles and units: a run may have another unit, or be over."""
        for key, frame in self.frames.items():
            frame.show_title(self.cards[key].title, self._unit(key))

    def _unit(self, key: str) -> str:
        parts = (self.cards[key].unit, self.frames[key].chart.source.note())
        return ", ".join(part for part in parts if part)

    def _find_cards(self) -> list[Card] | None:
        """Return the cards of the metrics that have a value by now; None while they are those found last."""
        run = self._run()
        ranks = self._options.offered(run)
        devices = [run.device(uuid) for uuid in measured_devices(run, self._options)]
        parts = [run.rank(rank) for rank in ranks], list(run.evaluations().values()), devices
        columns = (run.number, *(len(series.columns) for part in parts for series in part))
        if columns != self._columns:
            self._columns = columns
            self._blank = [{name for series in part for name in series.columns} for part in parts]
            self._valued = [set[str](), set[str](), set[str]()]
        elif not any(self._blank):
            return None
        for blank, valued, part in zip(self._blank, self._valued, parts, strict=True):
            # A loss that was never finite is worth a card that says so. Thousands of names are not read for this.
            known = blank if len(blank) > MOST_CHECKED else blank & {"loss"}
            seen = known | {name for name in blank - known if any(series.has_values(name) for series in part)}
            valued |= seen
            blank -= seen
        of_ranks, of_evaluations, of_devices = self._valued
        return [*cards_for(of_ranks, of_evaluations, self._heroes), *device_cards(of_devices)]

    def all_keys(self) -> list[str]:
        return self.arrangement.sort(self._found)

    def title(self, key: str) -> str:
        return self.cards[key].title

    def set_hidden(self, key: str, hidden: bool) -> None:
        before = self.arrangement.hidden
        self.arrange(replace(self.arrangement, hidden=before | {key} if hidden else before - {key}))

    def arrange(self, arrangement: Arrangement) -> None:
        if arrangement != self.arrangement:
            self.arrangement = arrangement
            if self._settings is not None and self._recipe:
                self._settings.set_values(f"cards/{self._recipe}", arrangement.values())
            self._show()

    def _show(self) -> None:
        self.shown = [key for key in self.all_keys() if key not in self.arrangement.hidden]
        self.grid.show_cards(self.shown)

    # --- what all charts have in common --------------------------------------------------------------------

    def set_smoothing(self, strength: int) -> None:
        self._options.smoothing = strength
        for chart in self.charts():
            chart.refresh()

    def refit(self) -> None:
        """Measures all charts again: other curves are shown, or another run."""
        for chart in self.charts():
            chart.refit()

    def fit(self) -> None:
        for chart in self.charts():
            chart.fit()

    def _source(self, card: Card) -> PlotSource:
        if card.key == STEP_TIME_CARD.key:
            return StepTime(self._run, self._options)
        if card.key in QUANTITIES:
            return DeviceChart(QUANTITIES[card.key], self._run, self._options)
        return RunChart(card, self._run, self._options)

    # --- what happens ------------------------------------------------------------------------------------

    def _on_enlarge_toggled(self, key: str, on: bool) -> None:
        self.grid.enlarge(key if on else None)

    def _on_hide_chosen(self, key: str) -> None:
        self.frames[key].enlarge.setChecked(False)
        self.set_hidden(key, True)

    def _on_dragged(self, key: str, place: QPoint) -> None:
        """Moves a card as soon as it is held over another one."""
        target = self.grid.key_at(place)
        if target is not None and target != key:
            self.arrange(self.arrangement.move(self._found, key, target))

    def _on_moved(self, key: str, by: int) -> None:
        at = self.shown.index(key) + by
        if 0 <= at < len(self.shown):
            self.arrange(self.arrangement.move(self._found, key, self.shown[at]))

    def _on_entry_chosen(self, key: str, curve: str, alone: bool) -> None:
        self._options.choose(curve, alone, self.frames[key].readout.keys())
        self.refit()
