"""Settings of the window: theme, smoothing, what is shown outside of it, power, prices, folders, and updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QWidget,
)

from app.views.dialogs.folder_row import FolderRow, KeptFolder
from app.views.dialogs.update_card import NO_UPDATES, UpdateCard, UpdateStatus
from app.views.plots.curve_controls import SmoothingSlider
from app.views.style.theme import THEMES
from app.views.widgets.build import Part, bold_label, dialog_buttons, lay_column, lay_row, muted_label
from app.views.widgets.card import Card
from app.views.widgets.field_row import ProblemLabel
from app.views.widgets.first_size import room_for
from app.views.widgets.tall_body import TallBody
from core.errors import RankdeckError
from core.measure.estimate.prices import NO_PRICES, Prices

WIDTH: Final = 560
MARGIN: Final = 16
PRICE_WIDTH: Final = 110
PRICES_NOTE: Final = "Used to estimate the cost of a run on GPUs. Write them with your currency."


@dataclass(frozen=True, slots=True)
class Preferred:
    """What the dialog shows when it opens.

    Attributes:
        theme: "system", "light" or "dark".
        smoothing: As in `CurveOptions`.
        notifies: News of runs is shown outside the window.
        shows_task_progress: Progress is shown in the task bar.
        shows_tray_icon: An icon in the tray shows live runs.
        keeps_awake: The computer does not fall asleep while a run trains.
        runs, models, environments: Where these are kept.
        prices: What energy and GPUs cost.
        updates: The server that is asked for them, and what it said.
    """

    theme: str
    smoothing: int
    runs: KeptFolder
    models: KeptFolder
    environments: KeptFolder
    notifies: bool = True
    shows_task_progress: bool = True
    shows_tray_icon: bool = True
    keeps_awake: bool = True
    prices: Prices = NO_PRICES
    updates: UpdateStatus = NO_UPDATES


class SettingsDialog(QDialog):
    """Each change has its effect at once and is kept; *Close* is all there is to press.

    Signals:
        theme_chosen: Another theme.
        smoothing_chosen: Another strength for all charts.
        notifications_chosen: Whether news of runs is shown outside the window.
        task_progress_chosen: Whether progress is shown in the task bar.
        tray_icon_chosen: Whether an icon in the tray shows live runs.
        keep_awake_chosen: Whether the computer is kept awake while a run trains.
        folder_requested: Open this folder.
        prices_chosen: Other `Prices`.
    """

    theme_chosen = Signal(str)
    smoothing_chosen = Signal(int)
    notifications_chosen = Signal(bool)
    task_progress_chosen = Signal(bool)
    tray_icon_chosen = Signal(bool)
    keep_awake_chosen = Signal(bool)
    folder_requested = Signal(object)
    prices_chosen = Signal(object)

    def __init__(self, preferred: Preferred, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Settings")
        self.smoothing = SmoothingSlider(preferred.smoothing)
        self.smoothing.strength_changed.connect(self.smoothing_chosen)
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        for button in buttons.buttons():
            if isinstance(button, QPushButton):
                button.setAutoDefault(False)  # nothing here is to be confirmed
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
            _card(bold_label("While a run trains"), *self._make_switches(preferred)),
            _card(bold_label("Prices"), *self._make_prices(preferred.prices)),
            _card(bold_label("Folders"), *self._make_folders(preferred)),
            self.updates,
            None,
            spacing=8,
        )
        self._buttons = buttons
        self.body = TallBody(self._cards, self._room_for_cards)
        lay_column(self, self.body, buttons, spacing=8, margins=(MARGIN, MARGIN, MARGIN, MARGIN), grow=self.body)
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

    def _make_switches(self, preferred: Preferred) -> tuple[QWidget, ...]:
        self.notifications = QCheckBox("&Notify me when it finishes, fails or needs me")
        self.notifications.setChecked(preferred.notifies)
        self.notifications.toggled.connect(self.notifications_chosen)
        self.task_progress = QCheckBox("Show progress in the tas&k bar")
        self.task_progress.setChecked(preferred.shows_task_progress)
        self.task_progress.toggled.connect(self.task_progress_chosen)
        self.tray_icon = QCheckBox("Show an &icon beside the clock")
        self.tray_icon.setChecked(preferred.shows_tray_icon)
        self.tray_icon.toggled.connect(self.tray_icon_chosen)
        self.keep_awake = QCheckBox("Keep this PC a&wake (runs started from now on)")
        self.keep_awake.setChecked(preferred.keeps_awake)
        self.keep_awake.toggled.connect(self.keep_awake_chosen)
        return self.notifications, self.task_progress, self.tray_icon, self.keep_awake

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
        return room_for(self).height() - self._buttons.sizeHint().height() - 2 * MARGIN - 8

    def _fit(self) -> None:
        """Makes room for all lines of the wrapped texts, which a layout's size hint does not know of."""
        layout, width = self._cards.layout(), max(WIDTH, self.width() if self.isVisible() else 0)
        if layout is not None:
            cards = min(layout.totalHeightForWidth(width - 2 * MARGIN), self._room_for_cards())
            height = cards + self._buttons.sizeHint().height() + 2 * MARGIN + 8
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
