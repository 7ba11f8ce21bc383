"""A plot with its head: title, unit, legend and buttons."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from app.plots.chart import KEYS, Chart
from app.plots.readout import Readout
from app.style.icons import icon
from app.widgets.build import bold_label, muted_label
from app.widgets.card import draw_card
from app.widgets.tone_label import ToneLabel

HEAD_MARGIN: Final = 10
SIGN: Final = 14


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

    Signals:
        enlarge_toggled: It is to have all the room, or its own again.
        dragged: Its head is held at this place on the screen.
    """

    enlarge_toggled = Signal(bool)
    hide_chosen = Signal()
    dragged = Signal(QPoint)
    entry_chosen = Signal(str, bool)

    def __init__(self, title: str, chart: Chart, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.chart = chart
        self.title = bold_label(title, chart)
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.unit = muted_label(wraps=False)
        self.readout = Readout()
        self.readout.entry_chosen.connect(self.entry_chosen)
        self.enlarge = _head_button("enlarge", "Enlarge (Enter)", checkable=True)
        self.enlarge.toggled.connect(self.enlarge_toggled)
        self.more = _head_button("more", "Save, copy, scale, hide")
        self.more.clicked.connect(lambda: self._pop_up(self.more.mapToGlobal(QPoint(0, self.more.height()))))
        self._head = self._make_head()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 4, 1, 4)
        layout.setSpacing(2)
        layout.addLayout(self._head)
        layout.addWidget(chart, 1)
        self.warning = ToneLabel()
        self.warning.setContentsMargins(HEAD_MARGIN, 0, HEAD_MARGIN, 0)
        layout.addWidget(self.warning)
        chart.renewed.connect(self.read)
        chart.time_axis.cursor_changed.connect(self.read)
        chart.menu_requested.connect(self._pop_up)
        chart.enlarge_requested.connect(self.enlarge.toggle)
        chart.is_enlarged = self.enlarge.isChecked

    def _make_head(self) -> QHBoxLayout:
        head = QHBoxLayout()
        head.setContentsMargins(HEAD_MARGIN, 0, 4, 0)
        head.setSpacing(2)
        head.addWidget(self.title)
        head.addSpacing(4)
        head.addWidget(self.unit)
        head.addSpacing(6)
        head.addWidget(self.readout, 1)
        head.addSpacing(6)
        for button in (self.enlarge, self.more):
            head.addWidget(button)
        return head

    def show_title(self, title: str, unit: str) -> None:
        """Shows the title and the unit of the values; an empty unit takes no room."""
        if (title, unit) != (self.title.text(), self.unit.text()):
            self.title.setText(title)
            self.unit.setText(unit)
            self._fit_head()

    def show_warning(self, text: str) -> None:
        """Shows a problem with the plotted values below them; empty for none."""
        if text != self.warning.text():
            self.warning.say(text, "warning")
            self.chart.setAccessibleDescription(text or KEYS)

    def _fit_head(self) -> None:
        """Hides the unit before values are left out."""
        buttons = 2 * self.more.sizeHint().width()
        room = self.width() - self.title.sizeHint().width() - buttons - 5 * HEAD_MARGIN
        fits = self.unit.sizeHint().width() + self.readout.least_width() <= room
        self.unit.setVisible(bool(self.unit.text()) and fits)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_head()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        draw_card(self)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        in_head = event.position().y() < self.chart.y()
        event.setAccepted(in_head and event.button() == Qt.MouseButton.LeftButton)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.dragged.emit(event.globalPosition().toPoint())

    def _pop_up(self, place: QPoint) -> None:
        # Here: the first picture needs no menu, nor what it saves.
        from app.charts import chart_menu

        menu = chart_menu.make_menu(self.chart, self.title.text(), self, self.hide_chosen.emit)
        chart_menu.pop_up(menu, place)

    def read(self) -> None:
        """Shows the values at the crosshair, or the newest."""
        if self.isVisible() and self.readout.show_readings(self.chart.legend()):
            self._fit_head()
