"""The plots panel: a card for each metric of a run and of its devices, over one time axis."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QHideEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.charts.chart_cards import ChartCards
from app.charts.curve_controls import AxisBox, CardsButton, SmoothingSlider, fit_button, log_box, mean_box
from app.charts.device_chart import UTILISATION, DeviceWarnings, measured_devices
from app.charts.plot_frame import PlotFrame
from app.plots.canvas import NO_VALUES
from app.plots.chart import Chart
from app.plots.curve_options import CurveOptions
from app.plots.ticks import time_of_day
from app.plots.time_axis import TimeAxis
from app.run_data.run_series import ChangeSet, RunSeries
from app.run_data.series import AXES, AxisName
from app.settings import Settings
from app.shown_run.run_data import RunData
from app.widgets.build import lay_column, lay_row
from app.widgets.exposure import Exposure
from core.formatting import duration, percent
from core.machine.devices import DeviceSample
from core.machine.devices.names import RankNames
from core.metrics.column_group import EVAL_GROUP
from core.metrics.metric import LOSS
from core.recipes.heroes import Hero
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.state import RunState

# New points move a curve by a pixel or two in that time; more often than that cannot be seen.
LIVE_S: Final = 0.5
# Of a processor.
LARGEST_SHARE: Final = 0.05
SLOWEST_S: Final = 1.0
# New points that move the end of a curve by less than this are not drawn, only read.
UNSEEN_PIXELS: Final = 1.0
# Yet one of them may be a peak, which is seen at any width.
LONGEST_UNSEEN_S: Final = 10.0
SPARING_SHARE: Final = 0.015
SPARING_SLOWEST_S: Final = 3.0
# From which width on the controls have their whole texts.
CONTROLS_WIDTH: Final = 820
# How much the newest picture counts for what a picture costs: clocks of threads tick 64 times a second on Windows.
NEWEST_SHARE: Final = 0.3


class RedrawPace:
    """Pace of redrawing: the pause between two pictures, from what a picture of all charts costs."""

    def __init__(self) -> None:
        self._cost_s: float | None = None

    def learn(self, cost_s: float) -> None:
        before = cost_s if self._cost_s is None else self._cost_s
        self._cost_s = before + NEWEST_SHARE * (cost_s - before)

    def is_worth_drawing(self, pixels: float, since_s: float) -> bool:
        """True if new points change a picture visibly.

        Args:
            pixels: By how much they move the end of the curves.
            since_s: Since the picture was made.
        """
        return not 0.0 <= pixels < UNSEEN_PIXELS or since_s >= LONGEST_UNSEEN_S

    def pause_s(self, *, sparing: bool) -> float:
        """Seconds between two pictures; `sparing`: a run trains on this processor, and no crosshair is shown."""
        share, slowest_s = (SPARING_SHARE, SPARING_SLOWEST_S) if sparing else (LARGEST_SHARE, SLOWEST_S)
        return min(max(LIVE_S, (self._cost_s or 0.0) / share), slowest_s)


PLOTTED: Final = ("rank", "eval", "device/")
# What is shown while a run does not have the axis that a person chose.
AXES_INSTEAD: Final[dict[AxisName, AxisName]] = {**dict.fromkeys(AXES, "step"), "clock": "time"}


class PlotsPanel(QWidget):
    """Cards of the metrics and devices of the run in `data`.

    New points are drawn as often as `RedrawPace` says, and only while they can be seen, as far as the system tells.

    Args:
        heroes: Gives those of a recipe: their cards come first.

    Attributes:
        controls: A row of controls for all charts; the window gives it a place.

    Signals:
        drawn: All new points are drawn.
    """

    drawn = Signal()

    def __init__(
        self, data: RunData, settings: Settings | None = None, heroes: Callable[[str], Sequence[Hero]] | None = None
    ) -> None:
        super().__init__()
        self._data = data
        self._heroes = heroes or (lambda _: ())
        self.time_axis = TimeAxis(self)
        self.options = CurveOptions()
        self._axis: AxisName = "step"
        self._stale = True
        self._is_all_new = True
        self._new_groups: set[str] = set()
        self._pace = RedrawPace()
        self._redrawn_at = -math.inf
        self._drawn_at = self._drawn_to = 0.0
        self._warnings = DeviceWarnings()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._redraw)
        self._exposure = Exposure(self)
        self._exposure.uncovered.connect(self.catch_up)
        self.cards = ChartCards(self._run, self.options, self.time_axis, settings, self)
        self.cards.made.connect(self._on_card_made)
        self._make_controls()
        self._lay_out()
        data.reset.connect(self._on_reset)
        data.changed.connect(self._on_changed)
        data.status_changed.connect(self._on_status_changed)
        data.progress_changed.connect(self._on_progress_changed)
        self._on_reset()

    # --- from outside ------------------------------------------------------------------------------------

    def set_axis(self, axis: str) -> None:
        """Takes an `AxisName`; one that the run does not have yet is shown as soon as it has it."""
        self._axis = next((name for name in AXES if name == axis), "step")
        self._show_axis()

    def _show_axis(self) -> None:
        run = self._data.series
        offered = run.axes()
        self.time_axis.switch(self._axis if self._axis in offered else AXES_INSTEAD[self._axis], run)
        self.time_axis.count(self.time_axis.name, run)
        self.axis_box.offer(offered, self.time_axis.name)

    def show_names(self, names: RankNames) -> None:
        self.options.names = names
        for chart in self.charts():
            chart.refresh()
        self._schedule()

    def show_samples(self, samples: Sequence[DeviceSample]) -> None:
        self._warnings.take_samples(samples)
        self._show_warnings()

    def _show_warnings(self) -> None:
        frame = self.cards.frames.get(UTILISATION.key)
        if frame is not None:
            devices = () if self.options.is_over else measured_devices(self._run(), self.options)
            frame.show_warning(self._warnings.text(devices, self.options.names.labels))

    def charts(self) -> list[Chart]:
        return self.cards.charts()

    def frames(self) -> list[PlotFrame]:
        return [self.cards.frames[key] for key in self.cards.shown if key in self.cards.frames]

    def read_values(self) -> None:
        """Shows the last values in the cards' heads at the same moment as the header."""
        for frame in self.frames():
            frame.read()

    @property
    def loss(self) -> PlotFrame:
        return self.cards.frame(LOSS)

    def settings(self) -> dict[str, Any]:
        return {
            "axis": self._axis,
            "smoothing_steps": self.options.smoothing,
            "log": self.log_box.isChecked(),
            "mean": self.options.mean,
        }

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        smoothing = settings.get("smoothing_steps")
        if isinstance(smoothing, int):
            self.smoothing.set_strength(smoothing)
            self.options.smoothing = self.smoothing.strength
        self.log_box.setChecked(settings.get("log") is True)
        if settings.get("mean") is True:
            self.mean_box.setChecked(True)
        self.set_axis(str(settings.get("axis")).replace("ts", "time"))  # as earlier versions called it

    # --- building ----------------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        self.smoothing = SmoothingSlider(self.options.smoothing)
        self.smoothing.strength_changed.connect(self.cards.set_smoothing)
        self.log_box = log_box()
        self.log_box.toggled.connect(self.loss.chart.set_log)
        self.loss.chart.log_changed.connect(self.log_box.setChecked)
        self.mean_box = mean_box()
        self.mean_box.hide()
        self.mean_box.toggled.connect(self._on_mean_toggled)
        self.axis_box = AxisBox()
        self.axis_box.axis_chosen.connect(self.set_axis)
        self.fit_button = fit_button()
        self.fit_button.clicked.connect(self.cards.fit)
        self.cards_button = CardsButton(self.cards)

    def _lay_out(self) -> None:
        self.controls = QWidget(self)
        self.controls.hide()
        lay_row(
            self.controls, self.smoothing, self.axis_box, self.log_box, self.mean_box, self.cards_button,
            self.fit_button, None, spacing=12,
        )  # fmt: skip
        lay_column(self, self.cards.grid, margins=(0, 8, 0, 0), grow=self.cards.grid)

    def _run(self) -> RunSeries:
        return self._data.series

    def _where(self, at: float) -> str:
        """Step and time since the beginning at a position of the time axis."""
        run, value = self._run(), np.array([at])
        if self.time_axis.axis == "step":
            step, moment = float(np.floor(at)), float(run.time_positions(value)[0])
        else:
            step, moment = float(run.step_positions(value)[0]), at
        began, axis = run.extent("ts"), self.time_axis
        known = [f"step {math.floor(step):,}"] if math.isfinite(step) else []
        if axis.counter is not None and known:
            counted = float(np.interp(step, *axis.counter))
            known.append(f"epoch {counted:.2f}" if axis.name == "epoch" else f"{round(counted):,} tokens")
        if began is not None and math.isfinite(moment):
            known.append(time_of_day(moment) if axis.name == "clock" else duration(moment - began[0]))
        return " · ".join(known)

    # --- what happens ------------------------------------------------------------------------------------

    def _on_reset(self) -> None:
        self.options.hidden.clear()
        self.time_axis.forget()
        self.time_axis.set_cursor(None)
        for frame in self.cards.frames.values():
            frame.readout.forget_widths()
        self.cards.refit()
        self._on_status_changed(self._data.state)
        self._timer.stop()
        # The pace is that of new points: the first ones of a run are drawn at once.
        self._redrawn_at = -math.inf
        self._schedule()

    def _on_changed(self, change: ChangeSet) -> None:
        if change.rewound or change.caught_up:
            self.cards.grid.show_empty(_why_empty(self._data))
            self._schedule()
            return
        groups = {group for group in change.groups if group.startswith(PLOTTED)}
        if groups:
            self._schedule(groups)

    def _on_status_changed(self, state: RunState | None) -> None:
        self.cards.grid.show_empty(_why_empty(self._data))
        if state is not None:
            self.cards.open_recipe(state.recipe, self._heroes(state.recipe))
            known = state.devices, not state.is_live
            if known != (self.options.trained_on, self.options.is_over):
                self.options.trained_on, self.options.is_over = known
                self._show_warnings()
                # Not with each state that says how far the run is.
                self._schedule()

    def _on_progress_changed(self, text: str, done: float | None) -> None:
        if text:
            self.cards.grid.show_empty(text + ("" if done is None else f": {percent(done)}"))
        else:
            self.cards.grid.show_empty(_why_empty(self._data))

    def _on_card_made(self, frame: PlotFrame) -> None:
        frame.chart.where = self._where
        frame.chart.empty_text = NO_VALUES
        frame.chart.show_marks(self._run().marks)

    def _on_mean_toggled(self, on: bool) -> None:
        self.options.mean = on
        self.cards.refit()

    # --- drawing -----------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        if self._stale:
            self._start_timer()

    def _schedule(self, groups: Collection[str] | None = None) -> None:
        """Draws soon: at once after a pause, else when it is time; not while it cannot be seen.

        Args:
            groups: Series that got rows; None: anything may be new.
        """
        self._stale = True
        self._is_all_new = self._is_all_new or groups is None
        self._new_groups |= set(groups or ())
        self._start_timer()

    def _start_timer(self) -> None:
        if self._exposure.is_seen and not self._timer.isActive():
            self._pace.learn(sum(chart.took_s for chart in self.charts()))
            state = self._data.state
            trains_on_cpu = state is not None and state.is_live and any(d.startswith("cpu:") for d in state.devices)
            sparing = trains_on_cpu and self.time_axis.cursor is None
            rest_s = self._pace.pause_s(sparing=sparing) - (time.monotonic() - self._redrawn_at)
            self._timer.start(round(1000 * max(0.0, rest_s)))

    def _redraw(self) -> None:
        if not self._exposure.is_seen:
            return
        run = self._data.series
        self._stale = False
        self._show_axis()
        self.mean_box.setVisible(len(run.ranks()) > 1)
        now, extent = time.monotonic(), run.extent(self.time_axis.axis)
        is_seen = self._tell_charts(self.time_axis.extent[1] if extent is None else extent[1], now)
        if extent is not None:
            self._redrawn_at = now
        if extent is not None and (is_seen or not self.time_axis.is_fitted):
            self.time_axis.set_extent(*extent)
        # With the axis as it is: a new card would else draw each change of it.
        self.cards.follow()
        for chart in self.charts():
            chart.show_marks(run.marks)
            chart.draw_new()
        if extent is not None:
            self.drawn.emit()

    def _tell_charts(self, newest: float, now: float) -> bool:
        """Tells charts of new points, `newest` on the time axis; returns whether they can be seen in a picture."""
        groups, all_new = self._new_groups, self._is_all_new
        self._new_groups, self._is_all_new = set(), False
        is_seen = all_new or self._can_be_seen(groups, newest, now)
        if is_seen:
            self._drawn_to, self._drawn_at = newest, now
        for chart in self.charts():
            if all_new or any(group.startswith(chart.source.fed_by) for group in groups):
                chart.expect_new() if is_seen else chart.read_new()
        return is_seen

    def _can_be_seen(self, groups: Collection[str], newest: float, now: float) -> bool:
        """True if new points of these series change the shown part of the time axis."""
        axis = self.time_axis
        if any(group.startswith(EVAL_GROUP) for group in groups):
            return True  # they move the best one's star
        if not axis.is_fitted and axis.high + axis.span < axis.extent[1]:
            # It ends further than its own width before them: not even a smoothed line reaches it.
            return False
        width = self.devicePixelRatioF() * max((chart.width() for chart in self.charts()), default=0)
        pixels = (newest - self._drawn_to) / axis.span * width
        return self._pace.is_worth_drawing(pixels, now - self._drawn_at)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten the controls' texts where they would lie over each other."""
        super().resizeEvent(event)
        is_wide = self.width() >= CONTROLS_WIDTH
        self.smoothing.label.setVisible(is_wide)
        self.mean_box.setText("Mean of de&vices" if is_wide else "Mean")
        self.fit_button.setText("Reset zoom" if is_wide else "Reset")

    def hideEvent(self, event: QHideEvent) -> None:
        self._timer.stop()
        super().hideEvent(event)


def _why_empty(data: RunData) -> str:
    state = data.state
    if not data.is_open or state is None or data.series.clock().rows:
        return ""
    if state.state == "starting":
        return f"Starting: {state.phase}" if state.phase else "Starting"
    if state.is_live:
        return "Waiting for the first step"
    if not data.is_caught_up:
        return ""
    return "This script reported no metrics." if state.recipe == USER_SCRIPT else "This run reported no steps."
