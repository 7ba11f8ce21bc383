"""Dataset field: a path with browse buttons, which accepts dropped files and shows their contents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeySequence
from PySide6.QtWidgets import QFileDialog, QLineEdit, QWidget

from app.form.field_row import ProblemLabel
from app.form.remedies import Remedies
from app.widgets.build import icon_button, lay_column, lay_row, muted_label, named
from app.widgets.buttons import Chip
from app.widgets.notice_bar import Step
from core.data.dataset import STDLIB, typed_dataset
from core.errors import RankdeckError, sentences

_ASKED: Final = "Text file or folder (drop one here)"
_NOT_ASKED: Final = "not needed"
_PREVIEW: Final = "Preview the data as the model will see it"


class DataField(QWidget):
    """The dataset's path. Files and folders can be typed, chosen, or dropped on it."""

    edited = Signal()
    preview_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._is_asked = True
        tip = "A text file or a folder of them.\nstdlib:// is the source of Python's standard library."
        self.line = named(QLineEdit(STDLIB, placeholderText=_ASKED), "Data: a text file or a folder", tip)
        self.line.setObjectName("field_dataset_file")
        self.line.textEdited.connect(self.edited)
        self._file = icon_button("file", "Choose a text file", self.choose_file)
        self._folder = icon_button("folder", "Choose a folder of text files", self._on_folder_clicked)
        self.preview = named(Chip("Preview"), "Preview the data", _PREVIEW)
        self.preview.clicked.connect(self.preview_requested)
        self.preview.setShortcut("Ctrl+D")
        self.set_preview(None)
        self.found = muted_label()
        self.problem = ProblemLabel()
        self.remedies = Remedies()
        row = lay_row(None, self.line, self._file, self._folder, spacing=4, grow=self.line)
        below = lay_row(None, self.found, None, self.preview, spacing=8, grow=self.found)
        lay_column(self, row, below, self.problem, self.remedies, spacing=4)
        self.setAcceptDrops(True)
        # Else it would take the drop as text with file:// in front.
        self.line.setAcceptDrops(False)

    def set_preview(self, why_not: str | None) -> None:
        """Enable the preview, or give the reason why there is none."""
        self.preview.setEnabled(why_not is None)
        key = self.preview.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        self.preview.setToolTip(f"{_PREVIEW} ({key})" + (f"\nUnavailable: {why_not}" if why_not else ""))

    def ask(self, is_asked: bool) -> None:
        """Say whether the recipe needs data; the default is hidden where it makes its samples itself."""
        path = self.path()
        self._is_asked = is_asked
        self.line.setPlaceholderText(_ASKED if is_asked else _NOT_ASKED)
        self.set_path(path)

    def path(self) -> str:
        return typed_dataset(self.line.text()) or ("" if self._is_asked else STDLIB)

    def set_path(self, path: str) -> None:
        """Show a path without a signal."""
        self.line.setText(path if self._is_asked or path != STDLIB else "")
        self.show_found(self.found.text())

    def show_found(self, text: str) -> None:
        self.found.setText(text)
        self.found.setVisible(bool(text) and bool(self.line.text()))

    def show_problem(self, error: RankdeckError | None, steps: Sequence[Step] = ()) -> None:
        self.problem.set_problem(error)
        self.remedies.set_steps(steps if error is not None else ())
        self.line.setAccessibleDescription(
            "" if error is None else f"Wrong: {sentences(error.cause, error.window_step)}"
        )

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        urls = event.mimeData().urls()
        if len(urls) == 1 and urls[0].isLocalFile():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self._take(event.mimeData().urls()[0].toLocalFile())
        event.acceptProposedAction()

    def _start_folder(self) -> str:
        path = Path(self.path())
        return str(path if path.is_absolute() else Path.home())

    def choose_file(self) -> None:
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
