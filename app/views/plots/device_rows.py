"""The devices of a run, one row each, over the same time axis as the other plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFont, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QScrollBar,
    QVBoxLayout,
    QWidget,
)

from app.run_data.run_series import RunSeries
from app.views.plots.chart import Chart
from app.views.plots.curve_controls import QuantityBox
from app.views.plots.device_curves import QUANTITIES, DeviceCurves, DeviceOptions
from app.views.plots.plot_frame import PlotFrame
from app.views.plots.time_axis import TimeAxis
from app.views.widgets.card import draw_card
from core.machine.devices.names import label_by_uuid

LEAST_ROW: Final = 24
LEAST_WITH_LABELS: Final = 30
LARGEST_ROW: Final = 240
LEAST_COLUMN: Final = 400
"""Room for a name and all its figures."""
ROWS_IN_ONE_COLUMN: Final = 2
HEAD_GAP, HEAD_MARGIN = 8, 8


class DeviceRows(QWidget):
    """A head with the quantities, and a scrolled row for each device.

    Args:
        run: Gives the run that is shown just now.
        time_axis: Shared by all plots.
        parent: Qt owner.
    """

    def __init__(self, run: Callable[[], RunSeries], time_axis: TimeAxis, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._run = run
        self._time_axis = time_axis
        self._names: dict[str, str] = {}
        self._shown: list[tuple[str, int | None, str]] = []
        self.options = DeviceOptions()
        self.frames: list[PlotFrame] = []
        self._columns = 1
        self._rows = QGridLayout()
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setVerticalSpacing(4)
        self._rows.setHorizontalSpacing(8)
        inside = QWidget()
        inside.setLayout(self._rows)
        self._rows.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._scroll = QScrollArea()
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(inside)
        for see_through in (inside, self._scroll.viewport()):  # the card is the ground
            see_through.setAutoFillBackground(False)
        self._scroll.viewport().installEventFilter(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 6, 1, 6)
        layout.setSpacing(2)
        layout.addLayout(self._make_head())
        layout.addWidget(self._scroll, 1)

    def set_names(self, names: Mapping[str, str]) -> None:
        """What devices are called, by UUID."""
        self._names = dict(names)

    def show_devices(self, trained_on: tuple[str, ...]) -> None:
        """Makes a row for each device that was sampled.

        Args:
            trained_on: UUIDs by rank, for the order and the colours.
        """
        sampled = self._run().devices()
        ranks = {uuid: rank for rank, uuid in reversed(list(enumerate(trained_on)))}
        places = {uuid: place for place, uuid in enumerate(self._names)}
        order = sorted(sampled, key=lambda uuid: (ranks.get(uuid, len(ranks)), places.get(uuid, len(places)), uuid))
        wanted = [(uuid, ranks.get(uuid), label_by_uuid(uuid, self._names)) for uuid in order]
        if not wanted and self._run().device("host").rows:
            wanted = [("host", None, "This machine")]
        if wanted == self._shown:
            return
        self._shown = wanted
        for frame in self.frames:
            self._rows.removeWidget(frame)
            frame.chart.close_plot()
            frame.deleteLater()
        self.frames = [self._make_row(uuid, rank, title) for uuid, rank, title in wanted]
        self._columns = 0
        self._arrange()

    def charts(self) -> list[Chart]:
        """The rows' plots."""
        return [frame.chart for frame in self.frames]

    def needed_height(self, width: int) -> int:
        """What all rows need in a card of this width, each with the least plot."""
        if not self.frames:
            return 0
        lines = -(-len(self.frames) // self._columns_in(width))
        row = self.frames[0].head_height() + self._rows.verticalSpacing() + LEAST_ROW
        head = self._heading.sizeHint().height() + self._boxes[0].sizeHint().height() // 2
        return head + 16 + lines * row + self.frames[0].chart.labels_height()

    @property
    def scroll_bar(self) -> QScrollBar:
        """Its width is taken from the rows' plots while it is there."""
        return self._scroll.verticalScrollBar()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The card that all rows stand on."""
        super().paintEvent(event)
        draw_card(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Rows share the room."""
        super().resizeEvent(event)
        self._arrange()
        needed = self._heading.sizeHint().width() + sum(box.full_width for box in self._boxes)
        short = needed + HEAD_GAP * (len(self._boxes) + 2) + 2 * HEAD_MARGIN > self.width()
        for box in self._boxes:
            box.set_short(short)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The rows' own room has changed, which may be after this widget's."""
        if event.type() == QEvent.Type.Resize:
            self._share_height()
        return super().eventFilter(watched, event)

    def _columns_in(self, width: int) -> int:
        """One, or two where there are many devices and room for them."""
        return 2 if len(self.frames) > ROWS_IN_ONE_COLUMN and width >= 2 * LEAST_COLUMN else 1

    def _arrange(self) -> None:
        """Puts the rows into one or two columns, and shares the height."""
        columns = self._columns_in(self.width())
        if columns != self._columns:
            self._columns = columns
            for number, frame in enumerate(self.frames):
                self._rows.addWidget(frame, number // columns, number % columns)
            for column in range(2):
                self._rows.setColumnStretch(column, int(column < columns))
        self._share_height()

    def _lines(self) -> int:
        return -(-len(self.frames) // max(1, self._columns))

    def _share_height(self) -> None:
        """Gives every row a plot of the same height; the last line has the time labels too, where there is room."""
        if not self.frames:
            return
        lines = self._lines()
        heads = lines * (self.frames[0].head_height() + self._rows.verticalSpacing())
        labels = self.frames[0].chart.labels_height()
        room = self._scroll.viewport().height() - heads
        has_labels = (room - labels) // lines >= LEAST_WITH_LABELS
        plot = max(LEAST_ROW, min(LARGEST_ROW, (room - labels * has_labels) // lines))
        for number, frame in enumerate(self.frames):
            is_last = number // self._columns == lines - 1
            frame.chart.show_time_labels(has_labels and is_last)
            frame.chart.setFixedHeight(plot + labels * (has_labels and is_last))

    def _make_row(self, uuid: str, rank: int | None, title: str) -> PlotFrame:
        source = DeviceCurves(self._run, self.options, uuid, rank)
        chart = Chart(source, self._time_axis, f"Device {title}")
        chart.note = source.memory_axis
        frame = PlotFrame(title, chart, source.measured(), is_card=False)
        use = f"{uuid}: not used by this run" if rank is None else f"Rank {rank} trains on {uuid}"
        whose = source.measured() or "whole device, with all programs that use it"
        frame.title.setToolTip(f"{title}\n{use}\nFigures: {whose}")
        return frame

    def _make_head(self) -> QHBoxLayout:
        self._heading = QLabel("Devices")
        font = QFont(self._heading.font())
        font.setBold(True)
        self._heading.setFont(font)
        self._boxes = [QuantityBox(quantity, self.options) for quantity in QUANTITIES]
        head = QHBoxLayout()
        head.setContentsMargins(HEAD_MARGIN, 0, HEAD_MARGIN, 0)
        head.setSpacing(HEAD_GAP)
        head.addWidget(self._heading)
        head.addStretch(1)
        for box in self._boxes:
            box.toggled.connect(self._on_quantity_toggled)
            head.addWidget(box)
        return head

    def _on_quantity_toggled(self) -> None:
        for chart in self.charts():
            chart.refit()
