"""The devices of a run, one row each, over the same time axis as the other plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QScrollBar, QWidget

from app.run_data.run_series import RunSeries
from app.views.plots.device_curves import FORMS, QUANTITIES, DeviceCurves, DeviceOptions
from app.views.plots.device_plot_row import DevicePlotRow
from app.views.plots.device_strip import DeviceStrip
from app.views.plots.time_axis import TimeAxis
from app.views.widgets.build import bold_label, icon_button, lay_column, lay_row, muted_label
from app.views.widgets.card import draw_card
from core.machine.devices import DeviceSample
from core.machine.devices.names import label_by_uuid

# Room for a name and all its figures.
LEAST_COLUMN: Final = 400
ROWS_IN_ONE_COLUMN: Final = 2
ROW_GAP: Final = 6
COLUMN_GAP: Final = 24
EDGE: Final = 12
HEAD_GAP: Final = 4
# The figures of a run that is over.
SUMMARY: Final = "mean % and W, highest GiB and °C"


class DeviceRows(QWidget):
    """A head, and a row for each device; scrolled only where not even one line for each has room.

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
        self.rows: list[DevicePlotRow] = []
        self._rows_by_uuid: dict[str, DevicePlotRow] = {}
        self._heading = bold_label("Devices")
        self._what = muted_label(wraps=False)
        self.enlarge = icon_button("enlarge", "Enlarge", name="Enlarge the devices")
        self.enlarge.setCheckable(True)
        self.enlarge.setAutoRaise(True)
        self._more = icon_button("more", "Save, copy, choose what is drawn", self._pop_up_below)
        self._more.setAutoRaise(True)
        self._body = QWidget()
        self._scroll = QScrollArea()
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(self._body)
        for see_through in (self._body, self._scroll.viewport()):  # the card is the ground
            see_through.setAutoFillBackground(False)
        head = lay_row(None, self._heading, self._what, None, self.enlarge, self._more, spacing=8)
        lay_column(self, head, self._scroll, spacing=HEAD_GAP, margins=(EDGE, 4, EDGE - 4, EDGE - 4), grow=self._scroll)
        time_axis.cursor_changed.connect(self._show_what)
        self._show_what()

    def set_names(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)

    def show_devices(self, trained_on: tuple[str, ...]) -> None:
        """Makes a row for each device that was sampled.

        Args:
            trained_on: UUIDs by rank, for the order and the colours.
        """
        self._show_what()
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
        for row in self.rows:
            row.hide()
            row.strip.close_plot()
            row.deleteLater()
        self.rows = [self._make_row(uuid, rank, title) for uuid, rank, title in wanted]
        self._rows_by_uuid = {uuid: row for (uuid, _, _), row in zip(wanted, self.rows, strict=True)}
        self._arrange()
        self.updateGeometry()

    def show_samples(self, samples: Sequence[DeviceSample]) -> None:
        """Warns of devices that are held down just now, while the run goes."""
        for sample in samples:
            row = self._rows_by_uuid.get(sample.uuid)
            if row is None:
                continue
            if self.options.is_over:
                row.forget_warning()
            else:
                row.show_sample(sample)

    def show_waits(self, texts: Mapping[str, str]) -> None:
        """Says for which device others wait, by the UUID of those that wait, while the run goes."""
        if not self.options.is_over:
            for uuid, row in self._rows_by_uuid.items():
                row.show_waits(texts.get(uuid, ""))

    def charts(self) -> list[DeviceStrip]:
        return [row.strip for row in self.rows]

    def needed_height(self, width: int) -> int:
        """What all rows need in a card of this width, each in one line."""
        if not self.rows:
            return 0
        lines = -(-len(self.rows) // self._columns_in(width - 2 * EDGE))
        return self._head_height() + lines * (self.rows[0].least_height() + ROW_GAP) + EDGE

    @property
    def scroll_bar(self) -> QScrollBar:
        """There only while rows do not fit."""
        return self._scroll.verticalScrollBar()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        draw_card(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.enlarge.isChecked():
            self.enlarge.setChecked(False)
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._pop_up(event.globalPos())

    # --- laying out ------------------------------------------------------------------------------------------

    def _head_height(self) -> int:
        return self._more.sizeHint().height() + HEAD_GAP + 4

    def _columns_in(self, width: int) -> int:
        """One, or two where there are many devices and room for them."""
        return 2 if len(self.rows) > ROWS_IN_ONE_COLUMN and width >= 2 * LEAST_COLUMN else 1

    def _arrange(self) -> None:
        """Gives every row the same room, as much as there is for it."""
        if not self.rows:
            return
        width = self.width() - 2 * EDGE
        height = self.height() - self._head_height() - EDGE
        columns = self._columns_in(width)
        lines = -(-len(self.rows) // columns)
        least = self.rows[0].least_height()
        each = max(least, (height + ROW_GAP) // lines - ROW_GAP)
        needed = lines * (each + ROW_GAP) - ROW_GAP
        if needed > height:
            width -= self.scroll_bar.sizeHint().width()
        self._body.setFixedSize(max(1, width), max(1, needed))
        column = (width - COLUMN_GAP * (columns - 1)) // columns
        for number, row in enumerate(self.rows):
            left, line = number % columns * (column + COLUMN_GAP), number // columns
            row.setGeometry(left, line * (each + ROW_GAP), column, each)
        self._align()

    def _align(self) -> None:
        """Names and figures stand below each other; where one name has no room, all are short."""
        if not self.rows:
            return
        figures = max(row.figures_width for row in self.rows)
        room = self.rows[0].room_for_name(figures)
        is_short = any(row.name_width(False) > room for row in self.rows)
        name = max(row.name_width(is_short) for row in self.rows)
        for row in self.rows:
            row.align(is_short, name, figures)

    def _make_row(self, uuid: str, rank: int | None, title: str) -> DevicePlotRow:
        source = DeviceCurves(self._run, self.options, uuid, rank)
        strip = DeviceStrip(source, self._time_axis, f"Device {title}")
        row = DevicePlotRow(title, strip, source.measured(), self._body)
        use = f"{uuid}: not used by this run" if rank is None else f"Rank {rank} trains on {uuid}"
        whose = source.measured() or "whole device, with all programs that use it"
        row.title.setToolTip(f"{title}\n{use}\nFigures: {whose}")
        row.read()
        row.widened.connect(self._align)
        row.show()
        return row

    # --- the menu --------------------------------------------------------------------------------------------

    def set_drawn(self, quantity: str, on: bool) -> None:
        """Draws a quantity of the devices, or not; its figure is always shown."""
        (self.options.shown.add if on else self.options.shown.discard)(quantity)
        self._show_what()
        for strip in self.charts():
            strip.refit()

    def _show_what(self) -> None:
        shown = [FORMS[name] for name in QUANTITIES if name in self.options.shown]
        is_summary = self.options.is_over and self._time_axis.cursor is None
        self._what.setText(" · ".join([*shown, SUMMARY] if is_summary else shown))

    def _pop_up_below(self) -> None:
        self._pop_up(self._more.mapToGlobal(QPoint(0, self._more.height())))

    def _pop_up(self, place: QPoint) -> None:
        from app.views.plots import chart_menu  # here: the first picture needs no menu, nor what it saves

        strips = {title: row.strip for (_, _, title), row in zip(self._shown, self.rows, strict=True)}
        chart_menu.pop_up(chart_menu.make_device_menu(self, self.options, self.set_drawn, strips), place)
