"""Controls in a plot's head: smoothing, logarithm, devices, time axis, quantities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QAction, QActionGroup, QIcon, QPalette, QPixmap
from PySide6.QtWidgets import (
    QCheckBox,
    QInputDialog,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from app.charts.cards import Arrangement
from app.charts.chart_cards import ChartCards
from app.plots.curve_options import CurveOptions, rank_key
from app.run_data.series import AxisName
from app.style.fonts import tabular
from app.style.palette import rank_colour
from app.widgets.build import lay_row, named
from app.widgets.steady import ComboBox, Slider
from core.machine.devices.names import RankNames

STRENGTHS: Final = (0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


AXIS_TITLES: Final[dict[AxisName, str]] = {
    "step": "Step", "time": "Time", "clock": "Time of day", "tokens": "Tokens", "epoch": "Epoch",
}  # fmt: skip


class SmoothingSlider(QWidget):
    """How strongly curves are smoothed: how many steps on each side count for a point of the bold line.

    Signals:
        strength_changed: The new strength; 0 is none.
    """

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
        """In steps; 0 turns smoothing off."""
        return STRENGTHS[self.slider.value()]

    def set_strength(self, strength: int) -> None:
        """Puts the slider to the value that is nearest from below."""
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


class DevicesButton(QPushButton):
    """Chooses the devices that are drawn: each, their mean, some.

    Signals:
        options_changed: The `CurveOptions` that it was given hold something else now.
    """

    options_changed = Signal()

    def __init__(self, options: CurveOptions) -> None:
        super().__init__()
        self._options = options
        self._ranks: list[int] = []
        self._names = options.names
        self.setText("De&vices")
        self.setAccessibleName("Devices drawn")
        self.setToolTip("Show each device or the mean of all, and choose devices")
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        self.setMenu(self._menu)
        self._kind = QActionGroup(self)
        self.each_action = self._add_kind("&Each device", False)
        self.mean_action = self._add_kind("&Mean of devices", True)
        self._menu.addSeparator()
        self._rank_actions: list[QAction] = []

    def show_ranks(self, ranks: list[int]) -> None:
        if ranks == self._ranks:
            return
        self._ranks = ranks
        for action in self._rank_actions:
            self._menu.removeAction(action)
            action.deleteLater()
        self._rank_actions = [self._rank_action(rank) for rank in ranks]
        self._menu.addActions(self._rank_actions)
        self.setVisible(len(ranks) > 1)

    def show_hidden(self) -> None:
        """Ticks the ranks that are drawn, after one was hidden or shown elsewhere."""
        for rank, action in zip(self._ranks, self._rank_actions, strict=True):
            action.blockSignals(True)
            action.setChecked(not self._options.is_hidden(rank_key(rank)))
            action.blockSignals(False)

    def show_names(self, names: RankNames) -> None:
        self._names = names
        for rank, action in zip(self._ranks, self._rank_actions, strict=True):
            self._name(action, rank)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._colour()
        super().changeEvent(event)

    def _add_kind(self, text: str, mean: bool) -> QAction:
        action = QAction(text, self)
        action.setCheckable(True)
        action.setChecked(self._options.mean == mean)
        action.triggered.connect(lambda: self._on_kind(mean))
        self._kind.addAction(action)
        self._menu.addAction(action)
        return action

    def _rank_action(self, rank: int) -> QAction:
        action = QAction(swatch(self.palette(), rank), "", self)
        self._name(action, rank)
        action.setCheckable(True)
        action.setChecked(not self._options.is_hidden(rank_key(rank)))
        action.toggled.connect(lambda shown: self._on_rank(rank, shown))
        return action

    def _name(self, action: QAction, rank: int) -> None:
        action.setText(self._names.full(rank).replace("&", "&&"))
        action.setToolTip(f"Rank {rank}")

    def _colour(self) -> None:
        for rank, action in zip(self._ranks, self._rank_actions, strict=True):
            action.setIcon(swatch(self.palette(), rank))

    def _on_kind(self, mean: bool) -> None:
        self._options.mean = mean
        self.options_changed.emit()

    def _on_rank(self, rank: int, shown: bool) -> None:
        self._options.hide(rank_key(rank), not shown)
        self.options_changed.emit()


class AxisBox(ComboBox):
    """What stands at the bottom of charts: steps, time, tokens …; what the run does not have is left out.

    Signals:
        axis_chosen: An `AxisName`.
    """

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
    """Back to the whole run, and to following it. Its key is F; Alt+F is FSDP's in New run."""
    button = named(QToolButton(), "Reset zoom", "Show the whole run and follow it (F, or double-click a plot)")
    button.setText("Reset zoom")
    return button


def log_box() -> QCheckBox:
    tip = "Logarithmic loss axis (values of zero and below are not drawn)"
    return named(QCheckBox("&Log"), "Logarithmic loss", tip)


def swatch(palette: QPalette, rank: int) -> QIcon:
    pixmap = QPixmap(12, 12)
    pixmap.fill(rank_colour(rank, palette))
    return QIcon(pixmap)


MOST_LISTED: Final = 40


class CardsButton(QPushButton):
    """Offers all cards of the shown run; with more than a screen has lines, the hidden ones and a search."""

    def __init__(self, cards: ChartCards) -> None:
        super().__init__("&Cards")
        self._cards = cards
        self.setAccessibleName("Cards shown")
        self.setToolTip("Choose which charts are shown")
        self._menu = QMenu(self)
        self._menu.aboutToShow.connect(self.fill)
        self.setMenu(self._menu)

    def fill(self) -> QMenu:
        """Makes the menu for the cards that there are now."""
        cards, hidden = self._cards, self._cards.arrangement.hidden
        keys = cards.all_keys()
        self._menu.clear()
        if len(keys) > MOST_LISTED:
            self._menu.addAction("&Find a card…").triggered.connect(self._find)
            self._menu.addSeparator()
            keys = [key for key in keys if key in hidden][:MOST_LISTED]
        for key in keys:
            action = self._menu.addAction(cards.title(key).replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(key not in hidden)
            action.toggled.connect(lambda shown, key=key: cards.set_hidden(key, not shown))
        if keys:
            self._menu.addSeparator()
        reset = self._menu.addAction("&Show all in the usual order")
        reset.setEnabled(cards.arrangement != Arrangement())
        reset.triggered.connect(cards.forget_arrangement)
        return self._menu

    def _find(self) -> None:
        by_title = {self._cards.title(key): key for key in self._cards.all_keys() if key in self._cards.cards}
        choice = QInputDialog(self)
        choice.setWindowTitle("Find a card")
        choice.setLabelText("Show the card of this metric:")
        choice.setComboBoxItems(list(by_title))
        choice.setOption(QInputDialog.InputDialogOption.UseListViewForComboBoxItems)
        choice.textValueSelected.connect(lambda title: self._cards.scroll_to(by_title[title]))
        choice.finished.connect(choice.deleteLater)
        choice.open()
