"""Diagnostics dialog: shows each file of a report as it would be saved, before it is saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QIcon
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

from app.views.dialogs.first_size import set_first_size
from app.views.widgets.build import code_box, lay_column, muted_label, named
from app.views.widgets.buttons import primary_button
from app.views.widgets.notice_bar import NoticeBar
from app.views.widgets.ruled_splitter import RuledSplitter
from core.doctor.diagnostics import DiagnosticsFile
from core.errors import RankdeckError
from core.formatting import byte_size

FILE_NAME: Final = "rankdeck-diagnostics.zip"
ABOUT: Final = (
    "This is all that is saved. Names of you and this machine, home folders, addresses and tokens were replaced. Look "
    "through it: names of your own files and runs stay."
)


class DiagnosticsDialog(QDialog):
    """The files at the left, the chosen one's text at the right.

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
        parts.setSizes([260, 500])
        size = sum(item.size for item in files)
        total = muted_label(f"{len(self._files)} files · {byte_size(size)} before compression", wraps=False)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        close = self.buttons.button(QDialogButtonBox.StandardButton.Close)
        close.setIcon(QIcon())
        close.setAutoDefault(False)
        self.save = primary_button("&Save…")
        self.buttons.addButton(self.save, QDialogButtonBox.ButtonRole.ActionRole)
        self.save.setDefault(True)
        self.save.clicked.connect(self._on_save_clicked)
        self.buttons.rejected.connect(self.reject)
        column = (self.notice, about, parts, total, self.buttons)
        lay_column(self, *column, spacing=8, margins=(16, 16, 16, 12), grow=parts)
        set_first_size(self, 820, 560)
        self.list.setCurrentIndex(self.list.model().index(0, 0))
        self.list.setFocus()

    def _make_list(self) -> QTreeWidget:
        table = named(QTreeWidget(), "Files of the report")
        table.setHeaderLabels(["File", "Size"])
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        head = table.header()
        head.setStretchLastSection(False)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        for item in self._files:
            row = QTreeWidgetItem([item.name, byte_size(item.size)])
            row.setToolTip(0, item.name)
            row.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            table.addTopLevelItem(row)
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
            self.text.setPlainText(self._files[self.list.indexOfTopLevelItem(item)].text)

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
