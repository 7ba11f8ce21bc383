"""A plot with its head: a title, a line of values that does not dance, and controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.views.plots import chart_menu
from app.views.plots.chart import Chart
from app.views.plots.drawing import draw_sign
from app.views.plots.source import Reading
from app.views.plots.title_box import TitleBox
from app.views.style.fonts import tabular
from app.views.style.icons import icon
from app.views.style.palette import plot_colours

SWATCH: Final = 8
GAP: Final = 4
ENTRY_GAP: Final = 14
HEAD_MARGIN: Final = 10
CORNER: Final = 6
SIGN: Final = 14


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
        self.setAccessibleName("; ".join(f"{r.label} {r.headline}".strip() for r in readings))
        self.setToolTip("\n".join(f"{r.label} {r.headline}".strip() for r in readings))
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
        right = float(self.width())
        widths = (self._measure(*entry, metrics)[0] + ENTRY_GAP for entry in enumerate(self._readings))
        x = max(0.0, right - sum(widths) + ENTRY_GAP)
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
        needed = metrics.horizontalAdvance(reading.headline)
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
            draw_sign(painter, QRectF(x, (self.height() - SWATCH) / 2, SWATCH, SWATCH), reading.colour, reading.is_ring)
            x += SWATCH + GAP
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        if reading.label:
            painter.setPen(colours.muted)
            width = metrics.horizontalAdvance(reading.label)
            painter.drawText(QRectF(x, 0, width + 1, self.height()), flags, reading.label)
            x += width + GAP
        painter.setPen(colours.text)
        place = QRectF(x, 0, value_width + 1, self.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, reading.headline)


def draw_card(widget: QWidget) -> None:
    """A ground with round corners and a hairline, in a paint event."""
    painter = QPainter(widget)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    colours = plot_colours(widget.palette())
    painter.setPen(colours.grid)
    painter.setBrush(colours.ground)
    painter.drawRoundedRect(QRectF(widget.rect()).adjusted(0.5, 0.5, -0.5, -0.5), CORNER, CORNER)


def _head_button(sign: str, name: str, *, checkable: bool = False) -> QToolButton:
    button = QToolButton()
    button.setIcon(icon(sign))
    button.setIconSize(QSize(SIGN, SIGN))
    button.setAutoRaise(True)
    button.setCheckable(checkable)
    button.setToolTip(name)
    button.setAccessibleName(name)
    return button


class PlotFrame(QFrame):
    """A card: a chart under its head.

    Args:
        title: What is plotted.
        chart: The plot.
        choice: Stands in the title's place while there is more than one thing to plot.
        is_card: With a ground of its own, and buttons for its menu and its size.
        parent: Qt owner.

    Signals:
        enlarge_toggled: It is to have all the room, or its own again.
    """

    enlarge_toggled = Signal(bool)

    def __init__(
        self,
        title: str,
        chart: Chart,
        choice: TitleBox | None = None,
        *,
        is_card: bool = True,
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
        self.readout = Readout()
        self.enlarge = _head_button("enlarge", "Enlarge", checkable=True)
        self.enlarge.toggled.connect(self.enlarge_toggled)
        self.more = _head_button("more", "Save, copy, scale")
        self.more.clicked.connect(lambda: self._pop_up(self.more.mapToGlobal(QPoint(0, self.more.height()))))
        self._head = self._make_head(choice, is_card)
        self._is_card = is_card
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*((1, 4, 1, 4) if is_card else (0, 0, 0, 0)))
        layout.setSpacing(2)
        layout.addLayout(self._head)
        layout.addWidget(chart, 1)
        chart.renewed.connect(self.read)
        chart.time_axis.cursor_changed.connect(self.read)
        chart.menu_requested.connect(self._pop_up)

    def _make_head(self, choice: TitleBox | None, is_card: bool) -> QHBoxLayout:
        head = QHBoxLayout()
        head.setContentsMargins(HEAD_MARGIN, 0, 4 if is_card else HEAD_MARGIN, 0)
        head.setSpacing(2)
        head.addWidget(self.title)
        if choice is not None:
            head.addWidget(choice)
            choice.hide()
        head.addSpacing(10)
        head.addWidget(self.readout, 1)
        if is_card:
            head.addSpacing(6)
        for button in (self.enlarge, self.more):
            head.addWidget(button)
            button.setVisible(is_card)
        return head

    def paintEvent(self, event: QPaintEvent) -> None:
        """The card's ground and its hairline."""
        super().paintEvent(event)
        if self._is_card:
            draw_card(self)

    def _pop_up(self, place: QPoint) -> None:
        title = self._choice.title if self._choice is not None else self.title.text()
        chart_menu.pop_up(self.chart, title, self, place)

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
