"""Bin dialog: the removed runs, to be put back or deleted for good."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QIcon, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QMessageBox,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from app.views.widgets.build import dialog_buttons, lay_column, lay_row, muted_label, named
from app.views.widgets.empty_note import WithNote
from app.views.widgets.notice_bar import NoticeBar
from core.formatting import UNKNOWN, byte_size, day_time
from core.run_folder.bin import BinnedRun

READING: Final = "Reading the bin…"
EMPTY: Final = "The bin is empty.\n\nRemoved runs stay here until they are deleted for good."
FOLDER: Final = Qt.ItemDataRole.UserRole
NAME, REMOVED, SIZE = range(3)


class BinDialog(QDialog):
    """A table of the removed runs, the one removed last on top.

    Signals:
        restore_requested: Folders in the bin, as a list.
        deletion_requested: Folders in the bin, as a list, after the user has confirmed it.
    """

    restore_requested = Signal(list)
    deletion_requested = Signal(list)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Bin")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._runs: dict[Path, BinnedRun] = {}
        self._sizes: dict[Path, int] = {}
        self._is_busy = True
        self.question: DeleteQuestion | None = None
        self.notice = NoticeBar()
        self.table = self._make_table()
        self.page = WithNote(self.table, READING)
        self.count = muted_label(wraps=False)
        self.restore, self.delete = QPushButton("&Restore"), QPushButton("&Delete for good…")
        self.empty = QPushButton("&Empty the bin…")
        self.restore.clicked.connect(lambda: self.restore_requested.emit(self.chosen()))
        self.delete.clicked.connect(lambda: self._ask(self.chosen()))
        self.empty.clicked.connect(lambda: self._ask(list(self._runs)))
        self.buttons = dialog_buttons(QDialogButtonBox.StandardButton.Close)
        self.buttons.rejected.connect(self.reject)
        for button in (self.restore, self.delete, self.empty):
            button.setAutoDefault(False)
        foot = lay_row(None, self.restore, self.delete, self.empty, None, self.buttons, spacing=8)
        parts = (self.notice, self.page, self.count, foot)
        lay_column(self, *parts, spacing=8, margins=(16, 16, 16, 12), grow=self.page)
        self.page.set_empty(True)
        self.resize(620, 420)
        self._show_buttons()

    def _make_table(self) -> QTreeWidget:
        table = named(QTreeWidget(), "Runs in the bin")
        table.setHeaderLabels(["Name", "Removed", "Size"])
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        head = table.header()
        head.setStretchLastSection(False)
        head.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        for column in (REMOVED, SIZE):
            head.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        table.itemSelectionChanged.connect(self._show_buttons)
        delete = QShortcut(QKeySequence.StandardKey.Delete, table)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(lambda: self.delete.click())
        return table

    # --- what is shown -----------------------------------------------------------------------------------

    def show_runs(self, runs: Sequence[BinnedRun]) -> None:
        """Shows what is in the bin; what was chosen stays chosen."""
        chosen, now = self.chosen(), time.time()
        self._runs = {run.path: run for run in runs}
        self.table.clear()
        for run in runs:
            item = QTreeWidgetItem([run.label, day_time(run.removed, now), _size(self._sizes.get(run.path))])
            item.setData(NAME, FOLDER, run.path)
            item.setToolTip(NAME, "\n".join((run.label, run.path.name, run.record.entry.problem or "")).strip())
            item.setTextAlignment(SIZE, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.table.addTopLevelItem(item)
            item.setSelected(run.path in chosen)
        if runs:  # the keyboard has a place to start from
            first = self.table.model().index(0, 0)
            self.table.selectionModel().setCurrentIndex(first, QItemSelectionModel.SelectionFlag.NoUpdate)
        self.page.set_empty(not runs, EMPTY)
        self.set_busy(False)

    def show_sizes(self, sizes: Mapping[Path, int]) -> None:
        """Shows what the runs take."""
        self._sizes |= sizes
        for item in self._items():
            item.setText(SIZE, _size(self._sizes.get(item.data(NAME, FOLDER))))
        self._show_buttons()

    def set_busy(self, busy: bool) -> None:
        """Offers nothing while something is under way."""
        self._is_busy = busy
        self._show_buttons()

    def chosen(self) -> list[Path]:
        """The folders of the chosen runs, from the top."""
        return [item.data(NAME, FOLDER) for item in self._items() if item.isSelected()]

    def _items(self) -> list[QTreeWidgetItem]:
        found = (self.table.topLevelItem(number) for number in range(self.table.topLevelItemCount()))
        return [item for item in found if item is not None]

    def _show_buttons(self) -> None:
        chosen = self.chosen()
        for button in (self.restore, self.delete):
            button.setEnabled(bool(chosen) and not self._is_busy)
        self.empty.setEnabled(bool(self._runs) and not self._is_busy)
        about = chosen or list(self._runs)
        text = f"{_runs(len(about))}{' selected' if chosen else ''} · {_size(self._sum(about), 'counting the size…')}"
        self.count.setText(text if about else "")

    def _sum(self, folders: Sequence[Path]) -> int | None:
        """What runs take; None until each of them was counted."""
        if any(folder not in self._sizes for folder in folders):
            return None
        return sum(self._sizes[folder] for folder in folders)

    # --- what the user does ------------------------------------------------------------------------------

    def _ask(self, folders: list[Path]) -> None:
        names = [self._runs[folder].label for folder in folders]
        self.question = DeleteQuestion(names, self._sum(folders), self)
        self.question.confirmed.connect(lambda: self.deletion_requested.emit(folders))
        self.question.open()


class DeleteQuestion(QMessageBox):
    """Asks before runs are deleted for good, and says how much that is.

    Args:
        names: Of the runs.
        size: What they take, in bytes; None if it is not known.
        parent: The dialog that asks.
    """

    confirmed = Signal()

    def __init__(self, names: Sequence[str], size: int | None, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Delete for good")
        self.setIcon(QMessageBox.Icon.Warning)
        self.setTextFormat(Qt.TextFormat.PlainText)
        what = f"“{names[0]}”" if len(names) == 1 else f"{len(names)} runs"
        self.setText(f"Delete {what} for good?")
        freed = "" if size is None else f"This frees {byte_size(size)}. "
        self.setInformativeText(f"{freed}Metrics, checkpoints and logs are deleted. This cannot be undone.")
        self.delete = self.addButton("&Delete for good", QMessageBox.ButtonRole.DestructiveRole)
        self.cancel = self.addButton(QMessageBox.StandardButton.Cancel)
        self.cancel.setIcon(QIcon())
        self.setDefaultButton(self.cancel)
        self.setEscapeButton(self.cancel)
        self.delete.clicked.connect(self.confirmed)


def _size(value: int | None, unknown: str = UNKNOWN) -> str:
    return unknown if value is None else byte_size(value)


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count:,} runs"
