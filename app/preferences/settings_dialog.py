"""Settings of the window: theme, smoothing, what is shown outside of it, power, prices, folders, and updates."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QDialogButtonBox,
    QLabel,
    QLineEdit,
    QRadioButton,
    QWidget,
)

from app.charts.curve_controls import SmoothingSlider
from app.form.field_row import ProblemLabel
from app.preferences.folder_row import FolderRow, KeptFolder
from app.preferences.update_card import NO_UPDATES, UpdateCard, UpdateStatus
from app.settings import KEEP_AWAKE, NOTIFICATIONS, TASK_PROGRESS, TRAY_ICON
from app.style.theme import THEMES
from app.widgets.build import Part, bold_label, lay_column, lay_row, muted_label
from app.widgets.card import Card
from app.widgets.dialog import Dialog
from app.widgets.first_size import room_for
from app.widgets.tall_body import TallBody
from core.errors import RankdeckError
from core.measure.estimate.prices import NO_PRICES, Prices

WIDTH: Final = 560
MARGIN: Final = 16
PRICE_WIDTH: Final = 110
# What is switched on while a run trains, by the name of its setting.
SWITCHES: Final = {
    NOTIFICATIONS: "&Notify me when it finishes, fails or needs me",
    TASK_PROGRESS: "Show progress in the tas&k bar",
    TRAY_ICON: "Show an &icon beside the clock",
    KEEP_AWAKE: "Keep this PC a&wake (runs started from now on)",
}
PRICES_NOTE: Final = "Used to estimate the cost of a run on GPUs. Write them with your currency."


@dataclass(frozen=True, slots=True)
class Preferred:
    """Values of the dialog when it opens.

    Attributes:
        theme: "system", "light" or "dark".
        smoothing: As in `CurveOptions`.
        runs, models, environments: Where these are kept.
        off: Those of `SWITCHES` that are switched off.
        prices: What energy and GPUs cost.
        updates: The server that is asked for them, and what it said.
    """

    theme: str
    smoothing: int
    runs: KeptFolder
    models: KeptFolder
    environments: KeptFolder
    off: Collection[str] = ()
    prices: Prices = NO_PRICES
    updates: UpdateStatus = NO_UPDATES


class SettingsDialog(Dialog):
    """Each change has its effect at once and is kept; *Close* is all there is to press.

    Signals:
        theme_chosen: Another theme.
        smoothing_chosen: Another strength for all charts.
        switched: One of `SWITCHES`, and whether it is on.
        folder_requested: Open this folder.
        prices_chosen: Other `Prices`.
    """

    theme_chosen = Signal(str)
    smoothing_chosen = Signal(int)
    switched = Signal(str, bool)
    folder_requested = Signal(object)
    prices_chosen = Signal(object)

    def __init__(self, preferred: Preferred, parent: QWidget | None = None) -> None:
        super().__init__("Settings", parent)
        self.smoothing = SmoothingSlider(preferred.smoothing)
        self.smoothing.strength_changed.connect(self.smoothing_chosen)
        self.add_standard(QDialogButtonBox.StandardButton.Close)
        self.confirm_nothing()
        self.updates = UpdateCard(preferred.updates)
        self.updates.resized.connect(self._fit)
        self._cards = QWidget()
        lay_column(
            self._cards,
            _card(bold_label("Theme"), self._make_themes(preferred.theme)),
            _card(
                bold_label("Charts"),
                lay_row(None, self.smoothing, None),
                muted_label("For all charts. Each run keeps its values; only the bold lines change."),
            ),
            _card(bold_label("While a run trains"), *self._make_switches(preferred.off)),
            _card(bold_label("Prices"), *self._make_prices(preferred.prices)),
            _card(bold_label("Folders"), *self._make_folders(preferred)),
            self.updates,
            None,
            spacing=8,
        )
        self.body = TallBody(self._cards, self._room_for_cards)
        self.lay_out(self.body, grow=self.body)
        self.setMinimumWidth(WIDTH)
        self._fit()
        self.themes[preferred.theme if preferred.theme in self.themes else "system"].setFocus()

    def _make_themes(self, chosen: str) -> QWidget:
        self.themes = {name: QRadioButton(label) for name, label in THEMES.items()}
        group = QButtonGroup(self)
        row = QWidget()
        for name, radio in self.themes.items():
            group.addButton(radio)
            radio.setChecked(name == chosen)
            radio.setAccessibleName(f"Theme: {THEMES[name].replace('&', '')}")
            radio.toggled.connect(lambda on, name=name: self.theme_chosen.emit(name) if on else None)
        lay_row(row, *self.themes.values(), None, spacing=24)
        return row

    def _make_switches(self, off: Collection[str]) -> list[QCheckBox]:
        self.switches = {name: QCheckBox(label) for name, label in SWITCHES.items()}
        for name, box in self.switches.items():
            box.setChecked(name not in off)
            box.toggled.connect(functools.partial(self.switched.emit, name))
        return list(self.switches.values())

    def _make_prices(self, prices: Prices) -> tuple[QWidget, ...]:
        self._prices = prices
        self.price_kwh = _price_field("Price of a kilowatt hour", "0.30 €", prices.as_typed(prices.kwh))
        self.price_gpu_hour = _price_field("Price of a GPU hour", "$2.50", prices.as_typed(prices.gpu_hour))
        for field in (self.price_kwh, self.price_gpu_hour):
            field.editingFinished.connect(self._on_prices_edited)
        self.price_note: QLabel = muted_label()
        self.price_note.setText(PRICES_NOTE)
        self.price_note.setMinimumHeight(QLabel("✕").sizeHint().height())  # Windows has the mark in a taller font only
        self.price_problem = ProblemLabel()
        row = QWidget()
        kwh, hour = QLabel("A kW&h:"), QLabel("A &GPU hour:")
        kwh.setBuddy(self.price_kwh)
        hour.setBuddy(self.price_gpu_hour)
        lay_row(row, kwh, self.price_kwh, hour, self.price_gpu_hour, None, spacing=8)
        return row, self.price_note, self.price_problem

    def _on_prices_edited(self) -> None:
        try:
            prices = self._prices.with_texts(self.price_kwh.text(), self.price_gpu_hour.text())
        except RankdeckError as error:
            self._show_price_problem(error)
            return
        self._show_price_problem(None)
        if prices != self._prices:
            self._prices = prices
            self.prices_chosen.emit(prices)

    def _show_price_problem(self, error: RankdeckError | None) -> None:
        """In the place of the note, which says what a price looks like too."""
        self.price_note.setVisible(error is None and self.price_problem.isHidden())  # never both: the dialog would grow
        self.price_problem.set_problem(error)
        self.price_note.setVisible(error is None)
        self._fit()

    def _make_folders(self, preferred: Preferred) -> tuple[QWidget, ...]:
        self.runs = FolderRow(preferred.runs, waits=True)
        self.models, self.environments = FolderRow(preferred.models), FolderRow(preferred.environments)
        rows = self.runs, self.models, self.environments
        for row in rows:
            row.opened.connect(self.folder_requested)
            row.resized.connect(self._fit)
        return rows

    def _room_for_cards(self) -> int:
        return room_for(self).height() - self.buttons.sizeHint().height() - 2 * MARGIN - 8

    def _fit(self) -> None:
        """Makes room for all lines of the wrapped texts, which a layout's size hint does not know of."""
        layout, width = self._cards.layout(), max(WIDTH, self.width() if self.isVisible() else 0)
        if layout is not None:
            cards = min(layout.totalHeightForWidth(width - 2 * MARGIN), self._room_for_cards())
            height = cards + self.buttons.sizeHint().height() + 2 * MARGIN + 8
            self.resize(width, max(self.height() if self.isVisible() else 0, height))


def _price_field(name: str, example: str, text: str) -> QLineEdit:
    field = QLineEdit(text)
    field.setPlaceholderText(example)
    field.setAccessibleName(name)
    field.setMaximumWidth(PRICE_WIDTH)
    return field


def _card(*parts: Part) -> Card:
    card = Card()
    lay_column(card, *parts, spacing=8, margins=(MARGIN, 12, MARGIN, 12))
    return card
