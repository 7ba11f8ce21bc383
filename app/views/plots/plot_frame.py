"""A plot with its head: a title, a line of values that does not dance, and controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.views.plots.chart import Chart
from app.views.plots.source import Reading
from app.views.plots.title_box import TitleBox
from app.views.style.fonts import tabular
from app.views.style.palette import plot_colours

SWATCH: Final = 8
GAP: Final = 4
ENTRY_GAP: Final = 14


def draw_sign(painter: QPainter, box: QRectF, reading: Reading) -> None:
    """A square in the curve's colour, or a ring."""
    if reading.colour is None:
        return
    if not reading.is_ring:
        painter.fillRect(box, reading.colour)
        return
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(reading.colour)
    painter.drawEllipse(box.adjusted(1, 1, -1, -1))
    painter.restore()


class Readout(QWidget):
    """Values in a row. Each keeps the widest place it ever needed; what does not fit is counted: "+ 3"."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._readings: list[Reading] = []
        self._widths: dict[tuple[int, str], float] = {}
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def show_readings(self, readings: list[Reading]) -> None:
        """Shows these values."""
        if readings == self._readings:
            return
        self._readings = readings
        self.setAccessibleName("; ".join(f"{r.label} {r.text}".strip() for r in readings))
        self.setToolTip("\n".join(f"{r.label} {r.text}".strip() for r in readings))
        self.update()

    def forget_widths(self) -> None:
        """Another run: places are measured again."""
        self._widths.clear()

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(80, int(QFontMetricsF(self.font()).height()) + 2)

    def minimumSizeHint(self) -> QSize:
        """One line, however short."""
        return QSize(0, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """A swatch, a label and a value for each reading that has room."""
        painter = QPainter(self)
        painter.setFont(tabular(self.font()))
        metrics = QFontMetricsF(painter.font())
        colours = plot_colours(self.palette())
        x, right = 0.0, float(self.width())
        for number, reading in enumerate(self._readings):
            width, value_width = self._measure(number, reading, metrics)
            left = len(self._readings) - number
            more = f"+ {left}"
            if x + width + (metrics.horizontalAdvance(more) + ENTRY_GAP if left > 1 else 0) > right:
                painter.setPen(colours.muted)
                if x + metrics.horizontalAdvance(more) <= right:
                    painter.drawText(QRectF(x, 0, right - x, self.height()), Qt.AlignmentFlag.AlignVCenter, more)
                return
            self._draw_entry(painter, reading, metrics, x, value_width)
            x += width + ENTRY_GAP

    def _measure(self, number: int, reading: Reading, metrics: QFontMetricsF) -> tuple[float, float]:
        key = (number, reading.label)
        needed = metrics.horizontalAdvance(reading.text)
        value_width = max(self._widths.get(key, 0.0), needed)
        self._widths[key] = value_width
        label = metrics.horizontalAdvance(reading.label) + GAP if reading.label else 0.0
        swatch = SWATCH + GAP if reading.colour is not None else 0.0
        return swatch + label + value_width, value_width

    def _draw_entry(
        self, painter: QPainter, reading: Reading, metrics: QFontMetricsF, x: float, value_width: float
    ) -> None:
        colours = plot_colours(self.palette())
        if reading.colour is not None:
            draw_sign(painter, QRectF(x, (self.height() - SWATCH) / 2, SWATCH, SWATCH), reading)
            x += SWATCH + GAP
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        if reading.label:
            painter.setPen(colours.muted)
            width = metrics.horizontalAdvance(reading.label)
            painter.drawText(QRectF(x, 0, width + 1, self.height()), flags, reading.label)
            x += width + GAP
        painter.setPen(colours.text)
        place = QRectF(x, 0, value_width + 1, self.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, reading.text)


class Legend(QWidget):
    """The same values one below the other, in the upper right corner of a plot, over its curves."""

    def __init__(self, chart: Chart) -> None:
        super().__init__(chart)
        self._chart = chart
        self._readings: list[Reading] = []
        self._width = 0.0
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def show_readings(self, readings: list[Reading]) -> None:
        """Shows these values."""
        if readings != self._readings:
            self._readings = readings
            self.setAccessibleName("; ".join(f"{r.label} {r.text}".strip() for r in readings))
            self.update()
        self._place()

    def forget_widths(self) -> None:
        """Another run: places are measured again."""
        self._width = 0.0

    def paintEvent(self, _event: QPaintEvent) -> None:
        """A swatch, a label and a value in each line; those that have no room are counted."""
        painter = QPainter(self)
        painter.setFont(tabular(self.font()))
        metrics, colours = QFontMetricsF(painter.font()), plot_colours(self.palette())
        ground = QColor(colours.ground)
        ground.setAlpha(215)
        painter.fillRect(self.rect(), ground)
        line, shown = metrics.height(), self._shown(metrics)
        for number, reading in enumerate(self._readings[:shown]):
            box = QRectF(GAP, GAP + number * line, self.width() - 2 * GAP, line)
            if reading.colour is not None:
                draw_sign(painter, QRectF(box.left(), box.top() + (line - SWATCH) / 2, SWATCH, SWATCH), reading)
            painter.setPen(colours.muted)
            painter.drawText(box.adjusted(SWATCH + GAP, 0, 0, 0), Qt.AlignmentFlag.AlignLeft, reading.label)
            painter.setPen(colours.text)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight, reading.text)
        if shown < len(self._readings):
            painter.setPen(colours.muted)
            box = QRectF(GAP, GAP + shown * line, self.width() - 2 * GAP, line)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight, f"+ {len(self._readings) - shown}")

    def _shown(self, metrics: QFontMetricsF) -> int:
        room = int((self._chart.plot_area().height() - 4 * GAP) / metrics.height())
        return len(self._readings) if len(self._readings) <= room else max(0, room - 1)

    def _place(self) -> None:
        metrics = QFontMetricsF(tabular(self.font()))
        for reading in self._readings:
            label = metrics.horizontalAdvance(reading.label) + ENTRY_GAP
            value = metrics.horizontalAdvance(reading.text)
            self._width = max(self._width, 2 * GAP + SWATCH + GAP + label + value)
        shown = self._shown(metrics)
        lines = shown + (shown < len(self._readings))
        area = self._chart.plot_area()
        width, height = int(self._width + 1), int(lines * metrics.height() + 2 * GAP)
        self.setGeometry(int(area.right()) - width - GAP, int(area.top()) + GAP, width, height)
        self.setVisible(bool(self._readings) and height < area.height() and width < area.width() / 2)


class PlotFrame(QWidget):
    """A chart under its head.

    Args:
        title: What is plotted.
        chart: The plot.
        controls: Put at the right end of the head. With controls the values stand inside the plot.
        choice: Stands in the title's place while there is more than one thing to plot.
        parent: Qt owner.
    """

    def __init__(
        self,
        title: str,
        chart: Chart,
        controls: list[QWidget],
        choice: TitleBox | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.chart = chart
        self._choice = choice
        self.title = QLabel(title)
        font = QFont(self.title.font())
        font.setBold(True)
        self.title.setFont(font)
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.title.setBuddy(chart)
        self.readout: Readout | Legend = Legend(chart) if controls else Readout()
        head = QHBoxLayout()
        head.setContentsMargins(8, 0, 8, 0)
        head.setSpacing(12)
        head.addWidget(self.title)
        if choice is not None:
            head.addWidget(choice)
            choice.hide()
        if controls:
            head.addStretch(1)
        else:
            head.addWidget(self.readout, 1)
        for control in controls:
            head.addWidget(control)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(head)
        layout.addWidget(chart, 1)
        self._head = head
        chart.renewed.connect(self.read)
        chart.time_axis.cursor_changed.connect(self.read)

    def show_titles(self, titles: Sequence[str]) -> None:
        """Offers what can be plotted here; a single quantity needs no list."""
        if self._choice is not None:
            self._choice.show_titles(titles)
            self._choice.setVisible(len(titles) > 1)
            self.title.setVisible(len(titles) == 1)

    def head_height(self) -> int:
        """What stands above the plot."""
        return self._head.sizeHint().height() + 2

    def read(self) -> None:
        """Shows the values at the crosshair, or the newest."""
        if self.isVisible():
            self.readout.show_readings(self.chart.readings())
