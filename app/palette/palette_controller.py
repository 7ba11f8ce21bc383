"""Control of the command palette: gathers its entries and opens the chosen one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence

from app.palette.palette_entries import (
    COMMAND,
    RUN,
    SETTING,
    PaletteEntry,
    field_entries,
    run_entries,
)
from app.runs.run_list import RunListModel
from app.shown_run.shown_run_controller import ShownRunController
from app.window.main_window import MainWindow

if TYPE_CHECKING:
    from app.palette.command_palette import CommandPalette

# Parts of the New run sheet that are no fields of its form.
SHEET_PARTS: Final[Mapping[str, str]] = {
    "recipe": "Recipe",
    "dataset_file": "Data",
    "devices": "Devices",
    "mode": "Mode",
}


class PaletteController(QObject):
    """Opens the command palette and carries out the chosen entry."""

    def __init__(
        self,
        window: MainWindow,
        runs: RunListModel,
        showing: ShownRunController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._runs = runs
        self._showing = showing
        self.view: CommandPalette | None = None
        window.actions_.palette.triggered.connect(self.open)
        self._go: dict[str, Callable[[Path | str], None]] = {
            RUN: lambda target: self._showing.show(Path(target)),
            COMMAND: lambda target: self._actions()[str(target)].trigger(),
            SETTING: lambda target: self._show_setting(str(target)),
        }

    def open(self) -> None:
        if self.view is None:
            from app.palette.command_palette import CommandPalette  # here: the window opens without it

            self.view = CommandPalette(self._window)
            self.view.chosen.connect(lambda entry: self._go[entry.kind](entry.target))
        self.view.open(self.entries())

    def entries(self) -> list[PaletteEntry]:
        """The entries that are available now, commands first."""
        rows = {name: row for name, row in self._window.new_run.form.rows.items() if row.applies}
        return [
            *(command_entry(name, action) for name, action in self._actions().items()),
            *run_entries(self._runs.records(), self._runs.values()),
            *field_entries({name: row.spec for name, row in rows.items()}, SHEET_PARTS),
        ]

    def _actions(self) -> dict[str, QAction]:
        actions = self._window.actions_
        found = {name: value for name, value in vars(actions).items() if isinstance(value, QAction)}
        found.pop("palette", None)
        return {**found, **{f"export {name}": action for name, action in actions.exports.items()}}

    def _show_setting(self, name: str) -> None:
        self._window.actions_.new_run.setChecked(True)
        self._window.new_run.problems.go_to(name)


def command_entry(name: str, action: QAction) -> PaletteEntry:
    """An action of the window, with its button's text; an export with its description."""
    key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    description = str(action.property("description"))
    text = description if name.startswith("export ") else action.text()
    title = text.replace("&&", "\0").replace("&", "").replace("\0", "&")
    return PaletteEntry(COMMAND, title, name, key, description, str(action.property("why_not") or ""))
