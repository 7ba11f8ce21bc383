"""A plot with its head: a title, a line of values that does not dance, and controls."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.views.plots import chart_menu
from app.views.plots.chart import Chart
from app.views.plots.drawing import draw_sign
from app.views.plots.source import Reading
from app.views.style.fonts import tabular
from app.views.style.icons import icon
from app.views.style.palette import plot_colours
from app.views.widgets.build import bold_label, muted_label

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
        unit: Of its values, as text; stands beside the title.
        is_card: With a ground of its own, buttons for its menu and its size, and a head to drag it by.
        parent: Qt owner.

    Signals:
        enlarge_toggled: It is to have all the room, or its own again.
        step_chosen: One of `chart_menu.CARD_STEPS`.
        dragged: Its head is held at this place on the screen; the flag: it is let go there.
    """

    enlarge_toggled = Signal(bool)
    step_chosen = Signal(str)
    dragged = Signal(QPoint, bool)

    def __init__(
        self, title: str, chart: Chart, unit: str = "", *, is_card: bool = True, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.chart = chart
        self._pressed_at: QPoint | None = None
        self._is_dragged = False
        self.title = bold_label(title, chart)
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.unit = muted_label(wraps=False)
        self.show_unit(unit)
        self.readout = Readout()
        self.enlarge = _head_button("enlarge", "Enlarge", checkable=True)
        self.enlarge.toggled.connect(self.enlarge_toggled)
        self.more = _head_button("more", "Save, copy, scale, arrange")
        self.more.clicked.connect(lambda: self._pop_up(self.more.mapToGlobal(QPoint(0, self.more.height()))))
        self._head = self._make_head(is_card)
        self._is_card = is_card
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*((1, 4, 1, 4) if is_card else (0, 0, 0, 0)))
        layout.setSpacing(2)
        layout.addLayout(self._head)
        layout.addWidget(chart, 1)
        chart.renewed.connect(self.read)
        chart.time_axis.cursor_changed.connect(self.read)
        chart.menu_requested.connect(self._pop_up)

    def _make_head(self, is_card: bool) -> QHBoxLayout:
        head = QHBoxLayout()
        head.setContentsMargins(HEAD_MARGIN, 0, 4 if is_card else HEAD_MARGIN, 0)
        head.setSpacing(2)
        head.addWidget(self.title)
        head.addSpacing(4)
        head.addWidget(self.unit)
        head.addSpacing(6)
        head.addWidget(self.readout, 1)
        if is_card:
            head.addSpacing(6)
            self.title.setCursor(Qt.CursorShape.OpenHandCursor)
            self.title.setToolTip("Drag to move this card")
        for button in (self.enlarge, self.more):
            head.addWidget(button)
            button.setVisible(is_card)
        return head

    def show_unit(self, unit: str) -> None:
        """Names the unit of the values; an empty text takes no room."""
        self.unit.setText(unit)
        self.unit.setHidden(not unit)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The card's ground and its hairline."""
        super().paintEvent(event)
        if self._is_card:
            draw_card(self)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A press on the head may become a drag."""
        in_head = event.position().y() < self.chart.geometry().top()
        if self._is_card and in_head and event.button() == Qt.MouseButton.LeftButton:
            self._pressed_at = event.globalPosition().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drags the card."""
        at = event.globalPosition().toPoint()
        if self._pressed_at is not None:
            far = (at - self._pressed_at).manhattanLength() >= QApplication.startDragDistance()
            self._is_dragged = self._is_dragged or far
            if self._is_dragged:
                self.dragged.emit(at, False)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Lets it go."""
        was_dragged, self._is_dragged, self._pressed_at = self._is_dragged, False, None
        if was_dragged:
            self.dragged.emit(event.globalPosition().toPoint(), True)

    def _pop_up(self, place: QPoint) -> None:
        ask = self.step_chosen.emit if self._is_card else None
        chart_menu.pop_up(self.chart, self.title.text(), self, place, ask)

    def head_height(self) -> int:
        """What stands above the plot."""
        return self._head.sizeHint().height() + 2

    def read(self) -> None:
        """Shows the values at the crosshair, or the newest."""
        if self.isVisible():
            self.readout.show_readings(self.chart.readings())
