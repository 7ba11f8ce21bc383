"""Controls in a plot's head: smoothing, logarithm, devices, time axis, quantities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from app.charts.cards import Arrangement
from app.charts.chart_cards import ChartCards
from app.run_data.series import AxisName
from app.style.fonts import tabular
from app.widgets.build import lay_row, named
from app.widgets.steady import ComboBox, Slider

STRENGTHS: Final = (0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


AXIS_TITLES: Final[dict[AxisName, str]] = {
    "step": "Step", "time": "Time", "clock": "Time of day", "tokens": "Tokens", "epoch": "Epoch",
}  # fmt: skip


class SmoothingSlider(QWidget):
    """The number of steps on each side that count for a point of the bold line."""

    strength_changed = Signal(int)

    def __init__(self, strength: int) -> None:
        super().__init__()
        self.slider = named(
            Slider(), "Smoothing",
            "The bold line is a straight line fitted to the values near each point.\n"
            "The number is how near, in steps on each side: the line is the same at any zoom, and single spikes do\n"
            "not lift it.",
        )  # fmt: skip
        self.slider.setRange(0, len(STRENGTHS) - 1)
        self.slider.setPageStep(1)
        self.slider.setFixedWidth(84)
        self.label = QLabel("S&moothing")
        self.label.setBuddy(self.slider)
        self.value = QLabel()
        self.value.setFont(tabular(self.value.font()))
        self.value.setMinimumWidth(self.value.fontMetrics().horizontalAdvance(_steps(STRENGTHS[-1])))
        lay_row(self, self.label, self.slider, self.value, spacing=4)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_strength(strength)
        self.slider.valueChanged.connect(self._on_moved)

    @property
    def strength(self) -> int:
        return STRENGTHS[self.slider.value()]

    def set_strength(self, strength: int) -> None:
        """Puts the slider to the nearest value from below."""
        self.slider.setValue(max(i for i, value in enumerate(STRENGTHS) if value <= max(0, strength)))
        self._show_value()

    def _on_moved(self) -> None:
        self._show_value()
        self.strength_changed.emit(self.strength)

    def _show_value(self) -> None:
        self.value.setText(_steps(self.strength))
        self.slider.setAccessibleDescription(_steps(self.strength))


def _steps(strength: int) -> str:
    return f"{strength:,} steps" if strength else "off"


class AxisBox(ComboBox):
    """The horizontal axis: steps, time, tokens …; those that the run does not have are left out."""

    axis_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Horizontal axis")
        self.setToolTip(
            "Steps; time since the first step; the time of day; tokens or epochs, where the run counts them"
        )
        self._offered: list[AxisName] = []
        self.offer(["step", "time"], "step")
        self.activated.connect(lambda: self.axis_chosen.emit(self.currentData()))

    def offer(self, names: Sequence[AxisName], chosen: AxisName) -> None:
        if list(names) != self._offered:
            self._offered = list(names)
            self.clear()
            for name in names:
                self.addItem(AXIS_TITLES[name], name)
        self.setCurrentIndex(self.findData(chosen))


def fit_button() -> QToolButton:
    """Make the button that shows the whole run and follows it. Its key is F; Alt+F is FSDP's in New run."""
    button = named(QToolButton(), "Reset zoom", "Show the whole run and follow it (F, or double-click a plot)")
    button.setText("Reset zoom")
    return button


def log_box() -> QCheckBox:
    tip = "Logarithmic loss axis (values of zero and below are not drawn)"
    return named(QCheckBox("&Log"), "Logarithmic loss", tip)


def mean_box() -> QCheckBox:
    tip = "Draw one curve for all devices, in place of one for each"
    return named(QCheckBox("Mean of de&vices"), "Mean of devices", tip)


MOST_LISTED: Final = 40


class CardsButton(QPushButton):
    """Offers all cards of the shown run; with more than a screen has lines, the hidden ones."""

    def __init__(self, cards: ChartCards) -> None:
        super().__init__("&Cards")
        self._cards = cards
        self.setAccessibleName("Cards shown")
        self.setToolTip("Choose which charts are shown")
        self._menu = QMenu(self)
        self._menu.aboutToShow.connect(self.fill)
        self.setMenu(self._menu)

    def fill(self) -> QMenu:
        cards, hidden = self._cards, self._cards.arrangement.hidden
        keys = cards.all_keys()
        self._menu.clear()
        if len(keys) > MOST_LISTED:
            keys = [key for key in keys if key in hidden][:MOST_LISTED]
        for key in keys:
            action = self._menu.addAction(cards.title(key).replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(key not in hidden)
            action.toggled.connect(lambda shown, key=key: cards.set_hidden(key, not shown))
        if keys:
            self._menu.addSeparator()
        reset = self._menu.addAction("&Show the usual cards")
        reset.setEnabled(cards.arrangement != Arrangement())
        reset.triggered.connect(lambda: cards.arrange(Arrangement()))
        return self._menu
