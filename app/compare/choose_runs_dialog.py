"""Dialog that chooses the runs to compare: a list with check boxes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialogButtonBox, QListWidget, QListWidgetItem, QWidget

from app.widgets.build import muted_label, named, search_line
from app.widgets.dialog import Dialog, Role
from core.compare.comparison import LEAST_RUNS, MOST_RUNS

FOLDER: Final = Qt.ItemDataRole.UserRole
LINE_GAP: Final = 2


class ChooseRunsDialog(Dialog):
    """Two to eight runs can be chosen.

    Args:
        runs: Folder and name of each, in the order of the list.
        checked: Folders that are chosen already.

    Signals:
        chosen: The folders, as a list.
    """

    chosen = Signal(list)

    def __init__(
        self, runs: Sequence[tuple[Path, str]], checked: Collection[Path] = (), parent: QWidget | None = None
    ) -> None:
        super().__init__("Compare runs", parent)
        self.filter = search_line("Filter by name", "Filter runs by name")
        self.filter.textChanged.connect(self._on_filter_changed)
        self.list = named(QListWidget(), "Runs to compare")
        self.list.setSpacing(LINE_GAP)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        for folder, label in runs:
            item = QListWidgetItem(label)
            item.setData(FOLDER, folder)
            item.setToolTip(folder.name)
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsSelectable)
            item.setCheckState(Qt.CheckState.Checked if folder in checked else Qt.CheckState.Unchecked)
            self.list.addItem(item)
        self.list.itemChanged.connect(self._show_count)
        self.count = muted_label(wraps=False)
        self.go = self.add_button("&Compare", Role.AcceptRole)
        self.add_standard(QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self._on_accepted)
        self.lay_out(self.filter, self.list, self.count, grow=self.list, size=(460, 480))
        self._show_count()

    def folders(self) -> list[Path]:
        items = (self.list.item(row) for row in range(self.list.count()))
        return [item.data(FOLDER) for item in items if item.checkState() == Qt.CheckState.Checked]

    def _show_count(self) -> None:
        count = len(self.folders())
        self.count.setText(f"{count} selected. Select {LEAST_RUNS} to {MOST_RUNS} runs.")
        self.go.setEnabled(LEAST_RUNS <= count <= MOST_RUNS)
        self.go.setDefault(self.go.isEnabled())

    def _on_filter_changed(self, text: str) -> None:
        for row in range(self.list.count()):
            item = self.list.item(row)
            item.setHidden(text.strip().lower() not in f"{item.text()}\n{item.toolTip()}".lower())

    def _on_accepted(self) -> None:
        self.chosen.emit(self.folders())
        self.accept()
