"""The devices of a run, one row each, over the same time axis as the other plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QScrollBar, QVBoxLayout, QWidget

from app.models.run_series import RunSeries
from app.views.plots.chart import Chart
from app.views.plots.curve_controls import QuantityBox
from app.views.plots.device_curves import QUANTITIES, DeviceCurves, DeviceOptions
from app.views.plots.plot_frame import PlotFrame
from app.views.plots.time_axis import TimeAxis

LEAST_ROW: Final = 30
LARGEST_ROW: Final = 96


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
        self._rows = QVBoxLayout()
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(4)
        inside = QWidget()
        inside.setLayout(self._rows)
        self._rows.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._scroll = QScrollArea()
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(self._make_head())
        layout.addWidget(self._scroll, 1)
        self.setVisible(False)

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
        order = sorted(sampled, key=lambda uuid: (ranks.get(uuid, len(ranks)), uuid))
        wanted = [(uuid, ranks.get(uuid), self._title(uuid)) for uuid in order]
        if not wanted and self._run().device("host").rows:
            wanted = [("host", None, "This machine")]
        if wanted == self._shown:
            return
        self._shown = wanted
        for frame in self.frames:
            self._rows.removeWidget(frame)
            frame.deleteLater()
        self.frames = [self._make_row(uuid, rank, title) for uuid, rank, title in wanted]
        for number, frame in enumerate(self.frames):
            frame.chart.shows_time_labels = number == len(self.frames) - 1
            self._rows.addWidget(frame)
        self.setVisible(bool(self.frames))
        self._share_height()

    def charts(self) -> list[Chart]:
        """The rows' plots."""
        return [frame.chart for frame in self.frames]

    @property
    def scroll_bar(self) -> QScrollBar:
        """Its width is taken from the rows' plots while it is there."""
        return self._scroll.verticalScrollBar()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Rows share the height."""
        super().resizeEvent(event)
        self._share_height()

    def _share_height(self) -> None:
        """Gives every row a plot of the same height; the last has the time labels in addition."""
        count = len(self.frames)
        if not count:
            return
        heads = sum(frame.head_height() + self._rows.spacing() for frame in self.frames)
        labels = self.frames[-1].chart.labels_height()
        plot = (self._scroll.viewport().height() - heads - labels) // count
        plot = max(LEAST_ROW, min(LARGEST_ROW, plot))
        for frame in self.frames:
            frame.chart.setFixedHeight(plot + (labels if frame.chart.shows_time_labels else 0))

    def _title(self, uuid: str) -> str:
        return self._names.get(uuid) or (uuid if len(uuid) <= 12 else f"{uuid[:12]}…")

    def _make_row(self, uuid: str, rank: int | None, title: str) -> PlotFrame:
        chart = Chart(DeviceCurves(self._run, self.options, uuid, rank), self._time_axis, f"Device {title}")
        frame = PlotFrame(title, chart, [])
        font = QFont(frame.title.font())
        font.setBold(False)
        frame.title.setFont(font)
        if rank is not None:
            frame.title.setToolTip(f"Rank {rank} trains on {uuid}")
        return frame

    def _make_head(self) -> QHBoxLayout:
        title = QLabel("Devices")
        font = QFont(title.font())
        font.setBold(True)
        title.setFont(font)
        head = QHBoxLayout()
        head.setContentsMargins(8, 0, 8, 0)
        head.setSpacing(12)
        head.addWidget(title)
        head.addStretch(1)
        for quantity in QUANTITIES:
            box = QuantityBox(quantity, self.options)
            box.toggled.connect(self._on_quantity_toggled)
            head.addWidget(box)
        return head

    def _on_quantity_toggled(self) -> None:
        for chart in self.charts():
            chart.refit()
