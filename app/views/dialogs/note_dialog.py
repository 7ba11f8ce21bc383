"""Note dialog: free text that is kept with a run."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QWidget

from app.views.widgets.build import bold_label, dialog_buttons, lay_column, named
from app.views.widgets.notice_bar import NoticeBar
from core.errors import UsageError
from core.run_folder.notes import RunNotes


class NoteDialog(QDialog):
    """Edits one run's note; Ctrl+Enter saves.

    Args:
        title: The run's name.
        notes: Of the run.

    Signals:
        note_saved: The new text.
    """

    note_saved = Signal(str)

    def __init__(self, title: str, notes: RunNotes, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Note")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._notes = notes
        self.notice = NoticeBar()
        self.text = named(QPlainTextEdit(notes.note), "Note")
        self.text.setPlaceholderText("What was tried, and what came of it")
        self.text.setTabChangesFocus(True)
        self.buttons = dialog_buttons(QDialogButtonBox.StandardButton.Save, QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self._on_accepted)
        self.buttons.rejected.connect(self.reject)
        for key in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(key), self, self._on_accepted)
        heading = bold_label(title)
        heading.setTextFormat(Qt.TextFormat.PlainText)
        heading.setWordWrap(True)
        parts = (heading, self.notice, self.text, self.buttons)
        lay_column(self, *parts, spacing=8, margins=(16, 16, 16, 12), grow=self.text)
        self.resize(460, 300)
        self.text.setFocus()

    def _on_accepted(self) -> None:
        text = self.text.toPlainText()
        try:
            changed = self._notes.noted(text)
        except UsageError as error:
            self.notice.show_error(error)
            return
        if changed != self._notes:
            self.note_saved.emit(changed.note)
        self.accept()
