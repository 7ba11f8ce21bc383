"""Diagnostics dialog: shows each file of a report as it would be saved, before it is saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHeaderView,
    QLabel,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from app.views.widgets.build import code_box, dialog_buttons, lay_column, muted_label, named
from app.views.widgets.buttons import primary_button
from app.views.widgets.first_size import set_first_size
from app.views.widgets.notice_bar import NoticeBar
from app.views.widgets.ruled_splitter import RuledSplitter
from core.doctor.diagnostics import DiagnosticsFile
from core.errors import RankdeckError
from core.formatting import byte_size

FILE_NAME: Final = "rankdeck-diagnostics.zip"
INDENT: Final = 18
ROW_HEIGHT: Final = 22
NUMBER: Final = Qt.ItemDataRole.UserRole
EMPTY: Final = "This file is empty."
ABOUT: Final = (
    "This is all that is saved. Names of you and this machine, home folders, addresses and tokens were replaced. Look "
    "through it: names of your own files and runs stay."
)


class DiagnosticsDialog(QDialog):
    """The files at the left, those of a run under its name, and the chosen one's text at the right.

    Args:
        files: As they would be saved.

    Signals:
        save_requested: Where to, as a `Path`.
    """

    save_requested = Signal(object)

    def __init__(self, files: Sequence[DiagnosticsFile], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Save diagnostics")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._files = list(files)
        self.notice = NoticeBar()
        about = QLabel(ABOUT, wordWrap=True)
        self.list = self._make_list()
        self.text = code_box("Text of the file")
        parts = RuledSplitter(Qt.Orientation.Horizontal)
        for part in (self.list, self.text):
            parts.addWidget(part)
        parts.setChildrenCollapsible(False)
        for place, share in enumerate((1, 2)):
            parts.setStretchFactor(place, share)
        parts.setSizes([340, 500])
        size = sum(item.size for item in files)
        total = muted_label(f"{len(self._files)} files · {byte_size(size)} before compression", wraps=False)
        self.buttons = dialog_buttons(QDialogButtonBox.StandardButton.Close)
        self.buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        self.save = primary_button("&Save…")
        self.buttons.addButton(self.save, QDialogButtonBox.ButtonRole.ActionRole)
        self.save.setDefault(True)
        self.save.clicked.connect(self._on_save_clicked)
        self.buttons.rejected.connect(self.reject)
        column = (self.notice, about, parts, total, self.buttons)
        lay_column(self, *column, spacing=8, margins=(16, 16, 16, 12), grow=parts)
        set_first_size(self, 880, 600)
        self.list.setCurrentIndex(self.list.model().index(0, 0))
        self.list.setFocus()

    def _make_list(self) -> QTreeWidget:
        table = named(QTreeWidget(), "Files of the report")
        table.setHeaderLabels(["File", "Size"])
        table.setIndentation(INDENT)
        table.setUniformRowHeights(True)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        head = table.header()
        head.setStretchLastSection(False)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        runs: dict[str, QTreeWidgetItem] = {}
        for number, item in enumerate(self._files):
            folder, name = _folder_and_name(item)
            owner = table.invisibleRootItem()
            if folder:
                owner = runs.get(folder) or _add_row(owner, item.run, folder)
                runs[folder] = owner
            row = _add_row(owner, name, item.name, byte_size(item.size))
            row.setData(0, NUMBER, number)
        for row in runs.values():
            row.setFirstColumnSpanned(True)
        table.expandAll()
        table.currentItemChanged.connect(self._on_file_chosen)
        return table

    def show_saved(self, path: Path) -> None:
        """The ZIP is there."""
        self.save.setEnabled(True)
        self.notice.say("success", "Saved", str(path))

    def show_error(self, error: RankdeckError) -> None:
        """Why it is not."""
        self.save.setEnabled(True)
        self.notice.show_error(error)

    def _on_file_chosen(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            number = item.data(0, NUMBER)
            self.text.setPlaceholderText(EMPTY if isinstance(number, int) else "Choose a file of this run.")
            self.text.setPlainText(self._files[number].text if isinstance(number, int) else "")

    def _on_save_clicked(self) -> None:
        dialog = QFileDialog(self, "Save diagnostics", str(Path.home() / FILE_NAME), "ZIP files (*.zip)")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("zip")
        dialog.selectFile(FILE_NAME)
        dialog.fileSelected.connect(self._on_path_chosen)
        dialog.open()

    def _on_path_chosen(self, path: str) -> None:
        self.save.setEnabled(False)  # until it is written
        self.save_requested.emit(Path(path))


def _folder_and_name(file: DiagnosticsFile) -> tuple[str, str]:
    """The folder of a run's file, and its name in there; of any other file its whole name."""
    parts = file.name.split("/", 2)
    return ("/".join(parts[:2]), parts[2]) if file.run and len(parts) > 2 else ("", file.name)


def _add_row(owner: QTreeWidgetItem, text: str, tip: str, size: str = "") -> QTreeWidgetItem:
    row = QTreeWidgetItem(owner, [text, size])
    row.setToolTip(0, tip)
    row.setSizeHint(0, QSize(0, ROW_HEIGHT))
    row.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return row
