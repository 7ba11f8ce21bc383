"""The plots panel: loss, throughput, step time and devices of one run over one time axis."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.models.run_data import RunData
from app.run_data.run_series import ChangeSet, RunSeries
from app.views.plots.chart import Chart
from app.views.plots.curve_controls import AxisBox, DevicesButton, FitButton, LogBox, SmoothingSlider
from app.views.plots.device_rows import DeviceRows
from app.views.plots.plot_frame import PlotFrame
from app.views.plots.rank_curves import (
    CurveOptions,
    EvalPoints,
    LossCurves,
    PlainCurves,
    RankCurves,
    StepTime,
    ThroughputCurves,
)
from app.views.plots.time_axis import TimeAxis
from app.views.plots.title_box import TitleBox
from core.formatting import duration
from core.machine.devices.names import RankNames
from core.run_folder.state import RunState

STEP_TIME: Final = "Step time"
MORE_PLOTS: Final = {"Loss scale": "loss_scale", "Gradient norm": "grad_norm", "Learning rate": "lr"}
"""What else can stand beside the throughput, with the column it is made of."""
HAVE_PLACES: Final = frozenset((
    "step", "ts", "attempt", "loss", "val_loss", "tokens_per_s", "samples_per_s", "step_time_s", "data_wait_s",
    "sync_wait_s", "sync_bytes", "sync_rounds", "device_mem_bytes", "tokens_seen", "epoch", "block_id", "chunk_id",
))  # fmt: skip
"""Columns that are drawn elsewhere, or count where the run is; a plot of their own is offered for all others."""
REDRAW_S: Final = 0.05
SLOWEST_REDRAW_S: Final = 1.0
LARGEST_SHARE: Final = 0.05
"""Of a processor, for drawing what is new: on CPU devices the window takes time from training, and in DDP all devices
wait for the slowest."""
PLOTTED: Final = ("rank", "eval", "device/")


class PlotsPanel(QWidget):
    """Loss, throughput, step time and devices of the run in `data`, redrawn at most 20 times a second.

    Where that would keep more than a twentieth of a processor busy, it is redrawn less often; once a second at least.

    While it is hidden, or nothing changed, nothing is drawn.

    Args:
        data: The run that is shown; the panel follows its signals.
        parent: Qt owner.
    """

    def __init__(self, data: RunData, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._data = data
        self.time_axis = TimeAxis(self)
        self.options = CurveOptions()
        self._stale = True
        self._redrawn_at = 0.0
        self._own_plots: dict[str, str] = {}
        self._titles: list[str] = []
        self._titles_of: tuple[int, int, int] | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._redraw)
        self._make_controls()
        self._make_plots()
        self._lay_out()
        data.reset.connect(self._on_reset)
        data.changed.connect(self._on_changed)
        data.status_changed.connect(self._on_status_changed)
        data.progress_changed.connect(self._on_progress_changed)
        self._on_reset()

    # --- from outside ------------------------------------------------------------------------------------

    def fit(self) -> None:
        """Shows the whole run and follows it."""
        for chart in self.charts():
            chart.fit()

    def set_axis(self, axis: str) -> None:
        """``"step"`` or ``"ts"`` (wall time)."""
        self.time_axis.switch("ts" if axis == "ts" else "step", self._data.series)
        self.axis_box.show_axis(self.time_axis.axis)

    def show_names(self, names: RankNames) -> None:
        """Names the devices, also as those of the run's ranks."""
        self.device_rows.set_names(names.labels)
        self.options.names = names
        self.devices_button.show_names(names)
        for chart in self.charts():
            chart.refresh()
        self._schedule()

    def charts(self) -> list[Chart]:
        """Every plot, from the top."""
        return [self.loss.chart, self.throughput.chart, self.step_time.chart, *self.device_rows.charts()]

    def frames(self) -> list[PlotFrame]:
        """The cards, from the top; not the devices' rows."""
        return [self.loss, self.throughput, self.step_time]

    def settings(self) -> dict[str, Any]:
        """What a person chose, to be remembered."""
        return {
            "axis": self.time_axis.axis,
            "smoothing": self.options.smoothing,
            "log": self.log_box.isChecked(),
            "mean": self.options.mean,
        }

    def apply_settings(self, settings: Mapping[str, Any]) -> None:
        """What `settings` gave; anything else in it is passed over."""
        smoothing = settings.get("smoothing")
        if isinstance(smoothing, int):
            self.smoothing.set_strength(smoothing)
            self.options.smoothing = self.smoothing.strength
        self.log_box.setChecked(settings.get("log") is True)
        if settings.get("mean") is True:
            self.devices_button.mean_action.trigger()
        self.set_axis("ts" if settings.get("axis") == "ts" else "step")

    # --- building ----------------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        self.smoothing = SmoothingSlider(self.options.smoothing)
        self.smoothing.strength_changed.connect(self._on_smoothing_changed)
        self.log_box = LogBox()
        self.devices_button = DevicesButton(self.options)
        self.devices_button.options_changed.connect(self._on_options_changed)
        self.axis_box = AxisBox()
        self.axis_box.axis_chosen.connect(self.set_axis)
        self.fit_button = FitButton()
        self.fit_button.clicked.connect(self.fit)

    def _make_plots(self) -> None:
        axis, options = self.time_axis, self.options
        self.loss = PlotFrame("Loss", Chart(LossCurves(self._run, options), axis, "Loss plot"))
        throughput = Chart(ThroughputCurves(self._run, options), axis, "Throughput plot")
        self.throughput = PlotFrame("Throughput", throughput)
        self._beside: dict[str, StepTime | RankCurves] = {STEP_TIME: StepTime(self._run, options)}
        self._beside |= {title: PlainCurves(self._run, options, name) for title, name in MORE_PLOTS.items()}
        self.beside_box = TitleBox(STEP_TIME)
        self.beside_box.quantity_chosen.connect(self._on_quantity_chosen)
        step_time = Chart(self._beside[STEP_TIME], axis, f"{STEP_TIME} plot")
        self.step_time = PlotFrame(STEP_TIME, step_time, self.beside_box)
        for frame in self.frames():
            frame.readout.setMinimumHeight(self.beside_box.sizeHint().height())  # list or no list, the same height
            frame.enlarge_toggled.connect(partial(self._on_enlarge_toggled, frame))
            frame.chart.where = self._where
        self.device_rows = DeviceRows(self._run, axis)
        self.log_box.toggled.connect(self.loss.chart.set_log)
        self.loss.chart.log_changed.connect(self.log_box.setChecked)
        self.device_rows.scroll_bar.rangeChanged.connect(self._align_right_edges)

    def _lay_out(self) -> None:
        pair = QHBoxLayout()
        pair.setSpacing(8)
        pair.addWidget(self.throughput, 1)
        pair.addWidget(self.step_time, 1)
        controls = QHBoxLayout()
        controls.setContentsMargins(4, 0, 0, 0)
        controls.setSpacing(12)
        for control in (self.smoothing, self.axis_box, self.log_box, self.devices_button):
            controls.addWidget(control)
        controls.addStretch(1)
        controls.addWidget(self.fit_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addLayout(controls)
        layout.addWidget(self.loss, 5)
        layout.addLayout(pair, 3)
        layout.addWidget(self.device_rows)  # its size policy says how much it needs

    def _align_right_edges(self) -> None:
        """The same time at the same place above and below, also while the rows have a scroll bar."""
        bar = self.device_rows.scroll_bar
        taken = bar.sizeHint().width() if bar.maximum() > bar.minimum() else 0
        for frame in (self.loss, self.step_time):
            frame.chart.set_right_inset(8.0 + taken)

    def _run(self) -> RunSeries:
        return self._data.series

    def _where(self, at: float) -> str:
        """Step and time since the beginning at a position of the time axis."""
        run, value = self._run(), np.array([at])
        if self.time_axis.axis == "step":
            step, moment = float(np.floor(at)), float(run.time_positions(value)[0])
        else:
            step, moment = float(run.step_positions(value)[0]), at
        began = run.extent("ts")
        known = [f"step {math.floor(step):,}"] if math.isfinite(step) else []
        if began is not None and math.isfinite(moment):
            known.append(duration(moment - began[0]))
        return " · ".join(known)

    # --- what happens ------------------------------------------------------------------------------------

    def _on_reset(self) -> None:
        self.options.hidden.clear()
        self._titles_of = None
        self.time_axis.forget()
        self.time_axis.set_cursor(None)
        for frame in self.frames():
            frame.readout.forget_widths()
        for chart in self.charts():
            chart.refit()
        self._on_status_changed(self._data.state)
        self._schedule()

    def _on_changed(self, change: ChangeSet) -> None:
        if change.rewound or change.caught_up or any(g.startswith(PLOTTED) for g in change.groups):
            self._schedule()

    def _on_status_changed(self, state: RunState | None) -> None:
        self._show_empty(_why_empty(state, self._data.is_open))
        if state is not None and state.devices:
            self._schedule()

    def _on_progress_changed(self, text: str, done: float | None) -> None:
        if text:
            self._show_empty(text + ("" if done is None else f": {done:.0%}"))
        else:
            self._show_empty(_why_empty(self._data.state, self._data.is_open))

    def _on_enlarge_toggled(self, chosen: PlotFrame, on: bool) -> None:
        """One card has all the room, or each its own."""
        for frame in self.frames():
            frame.setVisible(not on or frame is chosen)
        self.device_rows.setVisible(not on and bool(self.device_rows.frames))

    def _on_smoothing_changed(self, strength: int) -> None:
        self.options.smoothing = strength
        for chart in (self.loss.chart, self.throughput.chart):
            chart.refresh()

    def _on_options_changed(self) -> None:
        for chart in (self.loss.chart, self.throughput.chart, self.step_time.chart):
            chart.refit()

    def _on_quantity_chosen(self, title: str) -> None:
        chart = self.step_time.chart
        name = self._own_plots.get(title)
        if name is not None:  # made again: in another run it may be of evaluations
            kind = EvalPoints if name in self._run().evals.columns else PlainCurves
            self._beside[title] = kind(self._run, self.options, name)
        chart.source = self._beside[title]
        chart.setAccessibleName(f"{title} plot")
        self.step_time.readout.forget_widths()
        chart.refit()

    def _plots_beside(self, run: RunSeries) -> list[str]:
        """What the shown run has for the plot beside its throughput."""
        ranks = self.options.offered(run)
        known_by = (sum(len(run.rank(rank).columns) for rank in ranks), len(run.evals.columns), id(run))
        if known_by == self._titles_of:
            return self._titles
        self._titles_of = known_by
        names = {name for rank in ranks for name in run.rank(rank).columns}
        known = {title: name for title, name in MORE_PLOTS.items() if name in names}
        others = (names | set(run.evals.columns)) - HAVE_PLACES - set(MORE_PLOTS.values())
        self._own_plots = {_titled(name): name for name in sorted(others)}
        self._titles = [STEP_TIME, *known, *self._own_plots]
        return self._titles

    def _show_empty(self, loss_text: str) -> None:
        for chart, text in ((self.loss.chart, loss_text), (self.throughput.chart, ""), (self.step_time.chart, "")):
            if chart.empty_text != text:
                chart.empty_text = text
                chart.refresh()

    # --- drawing -----------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Draws soon: at once after a pause, else when the frame is due; not while hidden."""
        self._stale = True
        if self.isVisible() and not self._timer.isActive():
            pause_s = sum(chart.took_s for chart in self.charts()) / LARGEST_SHARE
            rest_s = min(max(REDRAW_S, pause_s), SLOWEST_REDRAW_S) - (time.monotonic() - self._redrawn_at)
            self._timer.start(max(0, round(rest_s * 1000)))

    def _redraw(self) -> None:
        if not self.isVisible():
            return
        self._stale = False
        self._redrawn_at = time.monotonic()
        run, state = self._data.series, self._data.state
        self.device_rows.show_devices(state.devices if state is not None else ())
        self.devices_button.show_ranks(self.options.offered(run))
        self.step_time.show_titles(self._plots_beside(run))
        for chart in self.charts():
            chart.expect_new()
        extent = run.extent(self.time_axis.axis)
        if extent is not None:
            self.time_axis.set_extent(*extent)
        for chart in self.charts():
            chart.show_marks(run.marks)
            chart.draw_new()

    def showEvent(self, event: QShowEvent) -> None:
        """Catches up on what was missed."""
        super().showEvent(event)
        if self._stale:
            self._schedule()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stops drawing."""
        self._timer.stop()
        super().hideEvent(event)


def _titled(name: str) -> str:
    """A column's name as a plot's title: "val_accuracy" is "Val accuracy"."""
    title = name.replace("_", " ").strip()
    return title[:1].upper() + title[1:]


def _why_empty(state: RunState | None, is_open: bool) -> str:
    if not is_open or state is None:
        return ""
    if state.state == "starting":
        return f"Starting: {state.phase}" if state.phase else "Starting"
    if state.is_live:
        return "Waiting for the first step"
    return "This run reported no step"
