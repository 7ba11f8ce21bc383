"""Settings of the window: theme, notifications, power, folders, and updates."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QWidget,
)

from app.settings import NOTIFICATIONS, TRAY_ICON
from app.style.theme import THEMES
from app.widgets.build import Part, bold_label, lay_column, lay_row, muted_label, named
from app.widgets.card import Card
from app.widgets.dialog import Dialog, TallBody, room_for

WIDTH: Final = 560
MARGIN: Final = 16
TITLE_WIDTH: Final = 96
# What is switched on while a run trains, by the name of its setting.
SWITCHES: Final = {
    NOTIFICATIONS: "&Notify me when it finishes, fails or needs me",
    TRAY_ICON: "Show an &icon beside the clock",
}
UPDATES_OFF: Final = "Nothing is checked. A check sends one request for this address and nothing else."


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """A folder that Rankdeck keeps something in.

    Attributes:
        title: Its contents: "Runs".
        folder: The folder in use now.
        coming: The folder in use from the next start; None: the same.
        fixed_by: A variable of the environment that sets it; empty where it can be chosen.
    """

    title: str
    folder: Path
    note: str
    coming: Path | None = None
    fixed_by: str = ""


class FolderRow(QWidget):
    """A kept folder, which can be changed; `waits`: another one is used from the next start only."""

    chosen = Signal(object)

    def __init__(self, kept: KeptFolder, *, waits: bool = False) -> None:
        super().__init__()
        self._kept, self._waits = kept, waits
        self.path = named(QLineEdit(readOnly=True), f"Folder of {kept.title.lower()}")
        self.change = named(QPushButton("Change…"), f"Choose another folder of {kept.title.lower()}")
        self.change.setAutoDefault(False)
        self.change.clicked.connect(self._on_change_clicked)
        self.change.setEnabled(not kept.fixed_by)
        self.note = muted_label()
        title = QLabel(kept.title)
        title.setMinimumWidth(TITLE_WIDTH)
        row = lay_row(None, title, self.path, self.change, spacing=8, grow=self.path)
        lay_column(self, row, self.note, spacing=2)
        self._show(kept.coming or kept.folder)

    def _show(self, folder: Path) -> None:
        kept, note = self._kept, self._kept.note
        self.path.setText(str(folder))
        if kept.fixed_by:
            note = f"The variable {kept.fixed_by} sets this folder. Remove it to choose another one here."
        elif self._waits and folder != kept.folder:
            note = f"Used from the next start of Rankdeck. Until then {kept.folder} is used; what is there stays there."
        self.note.setText(note)

    def _on_change_clicked(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, f"Folder of {self._kept.title.lower()}", str(self._kept.folder))
        if chosen:
            self.choose(Path(chosen).absolute())

    def choose(self, folder: Path) -> None:
        self._show(folder)
        self.chosen.emit(folder)


class SettingsDialog(Dialog):
    """Each change has its effect at once and is kept; the only button is *Close*.

    Args:
        theme: "system", "light" or "dark".
        off: Names of `SWITCHES` that are switched off.
        updates: The address of updates; empty: none.
    """

    theme_chosen = Signal(str)
    switched = Signal(str, bool)
    updates_chosen = Signal(str)

    def __init__(
        self,
        theme: str,
        runs: KeptFolder,
        models: KeptFolder,
        off: Collection[str],
        updates: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Settings", parent)
        self.add_standard(QDialogButtonBox.StandardButton.Close)
        self.buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)  # Enter presses nothing
        self.runs, self.models = FolderRow(runs, waits=True), FolderRow(models)
        self.updates = named(QLineEdit(updates), "Address of updates")
        self.updates.setPlaceholderText("https://… (leave empty to turn updates off)")
        self.updates.editingFinished.connect(self._on_updates_edited)
        self.updates_note = muted_label("" if updates else UPDATES_OFF)
        cards = QWidget()
        lay_column(
            cards,
            _card(bold_label("Theme"), self._make_themes(theme)),
            _card(bold_label("While a run trains"), *self._make_switches(off)),
            _card(bold_label("Folders"), self.runs, self.models),
            _card(bold_label("Updates"), self.updates, self.updates_note),
            None,
            spacing=8,
        )
        self.body = TallBody(cards, self._room_for_cards)
        self.lay_out(self.body, grow=self.body, size=(WIDTH, 0))
        self.setMinimumWidth(WIDTH)
        self.themes[theme if theme in self.themes else "system"].setFocus()

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

    def _on_updates_edited(self) -> None:
        if self.updates.isModified():  # not when the field only loses the focus
            self.updates.setModified(False)
            self.updates_chosen.emit(self.updates.text())

    def show_update_answer(self, text: str) -> None:
        self.updates_note.setText(text or UPDATES_OFF)

    def _room_for_cards(self) -> int:
        return room_for(self).height() - self.buttons.sizeHint().height() - 2 * MARGIN - 8


def _card(*parts: Part) -> Card:
    card = Card()
    lay_column(card, *parts, spacing=8, margins=(MARGIN, 12, MARGIN, 12))
    return card
