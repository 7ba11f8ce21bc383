"""Compare view: curves of up to eight runs over each other, and the table of what differs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QGuiApplication, QKeySequence, QPalette, QPixmap, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QFrame,
    QGridLayout,
    QHeaderView,
    QPushButton,
    QSplitter,
    QTableView,
    QWidget,
)

from app.models.compare_table import CompareTable
from app.views.plots.chart import Chart
from app.views.plots.plot_frame import PlotFrame
from app.views.plots.run_overlay import OverlaidRun, RunOverlay, shared_columns
from app.views.plots.time_axis import TimeAxis
from app.views.style.palette import rank_colour
from app.views.style.tones import blend, tone
from app.views.widgets.build import bold_label, lay_column, lay_row, muted_label, named
from core.compare.comparison import Comparison

SIZE: Final = (1100, 760)
CHARTS: Final = {"loss": "Loss", "val_loss": "Validation loss", "tokens_per_s": "Throughput"}
"""Charts that come first, with the columns they are made of."""
NOT_COMPARED: Final = frozenset((
    "step", "ts", "rank", "attempt", "lr", "grad_norm", "loss_scale", "samples_per_s", "step_time_s", "data_wait_s",
    "sync_wait_s", "sync_bytes", "sync_rounds", "device_mem_bytes", "tokens_seen", "epoch", "block_id", "chunk_id",
))  # fmt: skip
MOST_CHARTS: Final = 6
SWATCH: Final = 10
LABEL_LETTERS: Final = 34
RUN_LETTERS: Final = 18
ROW_GAP: Final = 10


class CompareDialog(QDialog):
    """A window of its own; a snapshot of the runs, which *Refresh* reads again.

    Args:
        comparison: The table.
        runs: The curves, in the same order.
        smoothing: As in `CurveOptions`.

    Signals:
        refresh_requested: The runs are to be read again.
    """

    refresh_requested = Signal()

    def __init__(
        self, comparison: Comparison, runs: Sequence[OverlaidRun], smoothing: int, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        self.setWindowTitle("Compare – Rankdeck")
        self.comparison = comparison
        self.table = CompareTable(comparison, self)
        self.time_axis = TimeAxis(self)
        self.frames = self._make_charts(runs, smoothing)
        self._make_table()
        self._make_buttons()
        self._lay_out()
        self._dress()
        self._on_rows_changed(False)
        self.resize(*SIZE)

    # --- building ----------------------------------------------------------------------------------------

    def _make_charts(self, runs: Sequence[OverlaidRun], smoothing: int) -> list[PlotFrame]:
        shared = shared_columns([run.series for run in runs])
        names = [name for name in CHARTS if name in shared]
        names += [name for name in shared if name not in NOT_COMPARED and name not in CHARTS]
        extents = [extent for run in runs if (extent := run.series.extent("step")) is not None]
        frames = []
        for name in names[:MOST_CHARTS]:
            title = CHARTS.get(name) or name.replace("_", " ").capitalize()
            chart = Chart(RunOverlay(runs, name, smoothing), self.time_axis, f"{title} of the compared runs")
            chart.where = lambda at: f"step {at:,.0f}"
            frame = PlotFrame(title, chart)
            frame.readout.hide()  # the table under the charts names the colours and has the values
            frame.enlarge_toggled.connect(partial(self._on_enlarge_toggled, frame))
            frames.append(frame)
        if extents:
            self.time_axis.set_extent(min(low for low, _ in extents), max(high for _, high in extents))
        return frames

    def _make_table(self) -> None:
        self.view = named(QTableView(), "Results, settings and environment of the compared runs")
        self.view.setModel(self.table)
        self.view.setFrameShape(QFrame.Shape.NoFrame)
        self.view.setShowGrid(False)
        self.view.setAlternatingRowColors(False)
        self.view.setTabKeyNavigation(False)
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.view.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.view.setWordWrap(False)
        self.view.verticalHeader().hide()
        self.view.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + ROW_GAP)
        header = self.view.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        header.setMinimumSectionSize(RUN_LETTERS * self.fontMetrics().averageCharWidth())
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        self.table.modelReset.connect(self._span_headings)

    def _make_buttons(self) -> None:
        self.refresh = QPushButton("&Refresh")
        self.refresh.setToolTip("Read the runs again (F5)")
        self.refresh.clicked.connect(self.refresh_requested)
        self.copy_text = QPushButton("&Copy as text")
        self.copy_text.clicked.connect(self._on_copy_text)
        self.copy_csv = QPushButton("Copy as CS&V")
        self.copy_csv.clicked.connect(self._on_copy_csv)
        self.all = QPushButton("Show &all")
        self.all.setCheckable(True)
        self.all.toggled.connect(self._on_rows_changed)
        for button in (self.refresh, self.copy_text, self.copy_csv, self.all):
            button.setAutoDefault(False)
        QShortcut(QKeySequence("F5"), self, self.refresh_requested.emit)
        QShortcut(QKeySequence.StandardKey.Copy, self.view, self._on_copy_text)

    def _lay_out(self) -> None:
        count = len(self.comparison.labels)
        about = muted_label(f"{count} runs · mean over devices; throughput: all devices together", wraps=False)
        head = lay_row(None, bold_label("Compare"), about, None, self.refresh, self.copy_text, self.copy_csv, spacing=8)
        charts = QWidget()
        grid = QGridLayout(charts)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(8)
        columns = 3 if len(self.frames) > 4 else min(3, max(1, len(self.frames)))
        for number, frame in enumerate(self.frames):
            grid.addWidget(frame, number // columns, number % columns)
        self.same = muted_label(self.comparison.same_text, wraps=False)
        below = QWidget()
        foot = lay_row(None, self.same, self.all, None, spacing=8)
        lay_column(below, self.view, foot, spacing=8, grow=self.view)
        self._parts = QSplitter(Qt.Orientation.Vertical)
        self._parts.addWidget(charts)
        self._parts.addWidget(below)
        self._parts.setSizes([300, 400])
        self._parts.setChildrenCollapsible(False)
        charts.setVisible(bool(self.frames))
        lay_column(self, head, self._parts, spacing=8, margins=(12, 12, 12, 12), grow=self._parts)

    # --- what happens ------------------------------------------------------------------------------------

    def _dress(self) -> None:
        palette = self.palette()
        self.table.tint = QBrush(blend(tone(palette, "accent"), palette.color(QPalette.ColorRole.Base), 0.12))
        self.table.swatches = [_swatch(rank_colour(place, palette)) for place in range(len(self.comparison.labels))]

    def _on_rows_changed(self, on: bool) -> None:
        self.table.show_all(on)
        self.all.setText("Show &differences only" if on else "Show &all")
        self.same.setVisible(not on)

    def _span_headings(self) -> None:
        self.view.clearSpans()
        for row in self.table.headings():
            self.view.setSpan(row, 0, 1, self.table.columnCount())
        self.view.setColumnWidth(0, LABEL_LETTERS * self.fontMetrics().averageCharWidth())

    def _on_enlarge_toggled(self, chosen: PlotFrame, on: bool) -> None:
        for frame in self.frames:
            frame.setVisible(not on or frame is chosen)

    def _on_copy_text(self) -> None:
        QGuiApplication.clipboard().setText(self.comparison.as_text(all_rows=self.all.isChecked()))

    def _on_copy_csv(self) -> None:
        QGuiApplication.clipboard().setText(self.comparison.as_csv(all_rows=self.all.isChecked()))

    def changeEvent(self, event: QEvent) -> None:
        """Follows light and dark."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "table"):
            self._dress()


def _swatch(colour: QColor) -> QPixmap:
    pixmap = QPixmap(SWATCH, 3)
    pixmap.fill(colour)
    return pixmap
