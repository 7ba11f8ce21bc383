"""Settings of the window: theme, smoothing, what is shown outside of it, power, prices, folder of runs, and updates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QWidget,
)

from app.views.dialogs.first_size import room_for
from app.views.dialogs.update_card import NO_UPDATES, UpdateCard, UpdateStatus
from app.views.plots.curve_controls import SmoothingSlider
from app.views.style.theme import THEMES
from app.views.widgets.build import Part, bold_label, dialog_buttons, lay_column, lay_row, muted_label
from app.views.widgets.card import Card
from app.views.widgets.elided_label import ElidedLabel
from app.views.widgets.field_row import ProblemLabel
from app.views.widgets.tall_body import TallBody
from core.errors import RankdeckError
from core.estimate.prices import NO_PRICES, Prices
from core.paths import RUNS_VARIABLE

WIDTH: Final = 560
MARGIN: Final = 16
PRICE_WIDTH: Final = 110
PRICES_NOTE: Final = "With your currency. They make the estimated cost of a run on GPUs."


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
        runs_dir: The folder of runs that is used.
        next_runs_dir: The one from the next start; None: the same.
        is_set_outside: A variable of the environment sets the folder, so it cannot be chosen here.
        prices: What energy and GPUs cost.
        updates: The server that is asked for them, and what it said.
    """

    theme: str
    smoothing: int
    runs_dir: Path
    notifies: bool = True
    shows_task_progress: bool = True
    shows_tray_icon: bool = True
    keeps_awake: bool = True
    next_runs_dir: Path | None = None
    is_set_outside: bool = False
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
        folder_chosen: Another folder of runs.
        folder_requested: The folder of runs is to be opened.
        prices_chosen: Other `Prices`.
    """

    theme_chosen = Signal(str)
    smoothing_chosen = Signal(int)
    notifications_chosen = Signal(bool)
    task_progress_chosen = Signal(bool)
    tray_icon_chosen = Signal(bool)
    keep_awake_chosen = Signal(bool)
    folder_chosen = Signal(object)
    folder_requested = Signal()
    prices_chosen = Signal(object)

    def __init__(self, preferred: Preferred, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Settings")
        self._runs_dir = preferred.runs_dir
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
            _card(bold_label("Folder of runs"), *self._make_folder(preferred)),
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

    def _make_folder(self, preferred: Preferred) -> tuple[QWidget, ...]:
        self.folder = ElidedLabel()
        self.folder.set_full_text(str(preferred.next_runs_dir or preferred.runs_dir))
        self.open_folder = _button("&Open", "Open the folder of runs")
        self.open_folder.clicked.connect(self.folder_requested)
        self.change_folder = _button("&Change…", "Choose another folder of runs")
        self.change_folder.clicked.connect(self._on_change_clicked)
        self.change_folder.setEnabled(not preferred.is_set_outside)
        self.folder_note: QLabel = muted_label()
        if preferred.is_set_outside:
            note = f"The variable {RUNS_VARIABLE} sets this folder. Remove it to choose another one here."
            self.change_folder.setToolTip(f"Unavailable: {note}")
        elif preferred.next_runs_dir is not None:
            note = _next_start(preferred.runs_dir)
        else:
            note = "The command line uses it too."
        self.folder_note.setText(note)
        row = QWidget()
        lay_row(row, self.folder, self.open_folder, self.change_folder, spacing=8, grow=self.folder)
        return row, self.folder_note

    def _on_change_clicked(self) -> None:
        dialog = QFileDialog(self, "Folder of runs", str(self._runs_dir))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._on_folder_selected)
        dialog.open()

    def _on_folder_selected(self, path: str) -> None:
        folder = Path(path).absolute()
        self.folder.set_full_text(str(folder))
        is_same = folder == self._runs_dir
        self.folder_note.setText("The command line uses it too." if is_same else _next_start(self._runs_dir))
        self._fit()
        self.folder_chosen.emit(folder)

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


def _next_start(now: Path) -> str:
    return f"Used from the next start of Rankdeck. Until then runs are kept in {now}, and they stay there."


def _button(text: str, name: str) -> QPushButton:
    button = QPushButton(text)
    button.setAutoDefault(False)
    button.setAccessibleName(name)
    return button


def _card(*parts: Part) -> Card:
    card = Card()
    lay_column(card, *parts, spacing=8, margins=(MARGIN, 12, MARGIN, 12))
    return card
