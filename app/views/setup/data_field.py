"""Dataset field: a path with browse buttons that takes dropped files, and what was found there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeySequence, QPalette
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QLineEdit, QToolButton, QVBoxLayout, QWidget

from app.views.style.icons import icon
from app.views.widgets.field_row import ProblemLabel
from core.errors import RankdeckError

STDLIB: Final = "stdlib://"
_ASKED: Final = "Text file or folder (drop one here)"
_NOT_ASKED: Final = "not needed"
_PREVIEW: Final = "Preview the data as the model will see it"


class DataField(QWidget):
    """Path of the dataset. Files and folders can be typed, chosen, or dropped on it.

    Signals:
        edited: The path is another one.
        preview_requested: The person wants to see what the model will see.
    """

    edited = Signal()
    preview_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_asked = True
        self.line = QLineEdit(STDLIB)
        self.line.setAccessibleName("Data: a text file or a folder")
        self.line.setPlaceholderText(_ASKED)
        self.line.setToolTip("A text file or a folder of them.\nstdlib:// is the source of Python's standard library.")
        self.line.setObjectName("field_dataset_file")
        self.line.textEdited.connect(self._on_edited)
        self._file = self._button("file", "Choose a text file", self.choose_file)
        self._folder = self._button("folder", "Choose a folder of text files", self._on_folder_clicked)
        self.preview = self._button("preview", _PREVIEW, self.preview_requested)
        self.preview.setShortcut("Ctrl+D")
        self.set_preview(None)
        self.found = QLabel()
        self.found.setWordWrap(True)
        self.found.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.problem = ProblemLabel()
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.line, 1)
        row.addWidget(self._file)
        row.addWidget(self._folder)
        row.addWidget(self.preview)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(row)
        column.addWidget(self.found)
        column.addWidget(self.problem)
        self.setAcceptDrops(True)
        self.line.setAcceptDrops(False)  # else it would take the drop as text with file:// in front

    def _button(self, sign: str, tip: str, slot: object) -> QToolButton:
        button = QToolButton()
        button.setIcon(icon(sign))
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        button.clicked.connect(slot)
        return button

    def set_preview(self, why_not: str | None) -> None:
        """Whether the data can be looked at; if not, the reason."""
        self.preview.setEnabled(why_not is None)
        key = self.preview.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        self.preview.setToolTip(f"{_PREVIEW} ({key})" + (f"\nUnavailable: {why_not}" if why_not else ""))

    def ask(self, is_asked: bool) -> None:
        """Whether the recipe needs data; where it makes its samples itself, what stands here unasked is hidden."""
        path = self.path()
        self._is_asked = is_asked
        self.line.setPlaceholderText(_ASKED if is_asked else _NOT_ASKED)
        self.set_path(path)

    def path(self) -> str:
        """What stands in the field."""
        return self.line.text().strip() or ("" if self._is_asked else STDLIB)

    def set_path(self, path: str) -> None:
        """Shows a path without telling anybody that it was edited."""
        self.line.setText(path if self._is_asked or path != STDLIB else "")
        self.show_found(self.found.text())

    def show_found(self, text: str) -> None:
        """Says under the field what the path holds."""
        self.found.setText(text)
        self.found.setVisible(bool(text) and bool(self.line.text()))

    def show_problem(self, error: RankdeckError | None) -> None:
        """Marks the path as wrong, with the reason."""
        self.problem.set_problem(error)
        if error is not None:
            self.show_found("")
        self.line.setAccessibleDescription("" if error is None else f"Wrong: {error.cause} {error.next_step}")

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Takes one file or folder of this machine."""
        urls = event.mimeData().urls()
        if len(urls) == 1 and urls[0].isLocalFile():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Takes over the dropped path."""
        self._take(event.mimeData().urls()[0].toLocalFile())
        event.acceptProposedAction()

    def _on_edited(self, _text: str) -> None:
        self.edited.emit()

    def _start_folder(self) -> str:
        path = Path(self.path())
        return str(path if path.is_absolute() else Path.home())

    def choose_file(self) -> None:
        """Lets the person choose a file."""
        path, _ = QFileDialog.getOpenFileName(self.window(), "Choose a text file to train on", self._start_folder())
        self._take(path)

    def _on_folder_clicked(self) -> None:
        self._take(
            QFileDialog.getExistingDirectory(self.window(), "Choose a folder of text files", self._start_folder())
        )

    def _take(self, path: str) -> None:
        if path:
            self.set_path(str(Path(path)))
            self.edited.emit()
