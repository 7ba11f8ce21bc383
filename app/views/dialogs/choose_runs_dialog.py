"""A list of runs with check boxes, to choose those that are compared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QListWidget, QListWidgetItem, QPushButton, QWidget

from app.views.widgets.build import lay_column, muted_label, named, search_line
from app.views.widgets.first_size import set_first_size
from core.compare.comparison import LEAST_RUNS, MOST_RUNS

FOLDER: Final = Qt.ItemDataRole.UserRole
LINE_GAP: Final = 2


class ChooseRunsDialog(QDialog):
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
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Compare runs")
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
        buttons = QDialogButtonBox()
        self.go = QPushButton("&Compare")
        buttons.addButton(self.go, QDialogButtonBox.ButtonRole.AcceptRole)  # first: Tab takes them in this order
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel).setIcon(QIcon())
        buttons.accepted.connect(self._on_accepted)
        buttons.rejected.connect(self.reject)
        lay_column(
            self, self.filter, self.list, self.count, buttons, spacing=8, margins=(12, 12, 12, 12), grow=self.list
        )
        set_first_size(self, 460, 480)
        self._show_count()

    def folders(self) -> list[Path]:
        """The chosen ones."""
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
