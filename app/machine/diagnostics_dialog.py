"""Diagnostics dialog: shows each file of a report before it is saved, to be edited or left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QFileDialog,
    QHeaderView,
    QLabel,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from app.widgets.build import code_box, muted_label, named
from app.widgets.buttons import PrimaryButton
from app.widgets.dialog import Dialog, Role
from app.widgets.ruled_splitter import RuledSplitter
from core.doctor.diagnostics import DiagnosticsFile
from core.errors import RankdeckError
from core.formatting import byte_size

FILE_NAME: Final = "rankdeck-diagnostics.zip"
INDENT: Final = 18
ROW_HEIGHT: Final = 22
NUMBER: Final = Qt.ItemDataRole.UserRole
EMPTY: Final = "This file is empty and is left out."
ABOUT: Final = (
    "This is all that is saved. Keys, tokens and passwords were replaced; names, paths and addresses are as they were. "
    "Look through it and change what you do not want to send. A file that you empty is left out."
)


class DiagnosticsDialog(Dialog):
    """The files at the left, those of a run under its name, and the chosen one's text at the right, to be changed.

    Args:
        files: As they would be saved.

    Signals:
        save_requested: Where to, as a `Path`.
    """

    save_requested = Signal(object)

    def __init__(self, files: Sequence[DiagnosticsFile], parent: QWidget | None = None) -> None:
        super().__init__("Save diagnostics", parent)
        self._files = list(files)
        about = QLabel(ABOUT, wordWrap=True)
        self.list = self._make_list()
        self._shown: int | None = None
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
        self.add_standard(QDialogButtonBox.StandardButton.Close)
        self.confirm_nothing()
        self.save = PrimaryButton("&Save…")
        self.buttons.addButton(self.save, Role.ActionRole)
        self.save.setDefault(True)
        self.save.clicked.connect(self._on_save_clicked)
        self.lay_out(self.notice, about, parts, total, grow=parts, size=(880, 600))
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

    def files(self) -> list[DiagnosticsFile]:
        """The files as they were changed, without those that were emptied."""
        self._keep_text()
        return [item for item in self._files if item.text.strip()]

    def show_saved(self, path: Path) -> None:
        """Shows where the ZIP was saved."""
        self.save.setEnabled(True)
        self.notice.say("success", "Saved", str(path))

    def show_error(self, error: RankdeckError) -> None:
        """Why it is not."""
        self.save.setEnabled(True)
        self.notice.show_error(error)

    def _on_file_chosen(self, item: QTreeWidgetItem | None) -> None:
        if item is None:
            return
        self._keep_text()
        number = item.data(0, NUMBER)
        self._shown = number if isinstance(number, int) else None
        self.text.setReadOnly(self._shown is None)
        self.text.setPlaceholderText("Choose a file of this run." if self._shown is None else EMPTY)
        self.text.setPlainText("" if self._shown is None else self._files[self._shown].text)

    def _keep_text(self) -> None:
        """Takes over what was changed; Qt's text has other line breaks, so one that was not stays as it is."""
        if self._shown is not None and self.text.document().isModified():
            self._files[self._shown] = replace(self._files[self._shown], text=self.text.toPlainText())

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
