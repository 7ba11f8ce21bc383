"""Note dialog: free text that is kept with a run."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialogButtonBox, QPlainTextEdit, QWidget

from app.widgets.build import heading, named
from app.widgets.dialog import Dialog
from core.errors import UsageError
from core.run_folder.notes import RunNotes


class NoteDialog(Dialog):
    """Edits the note of the run called `title`; Ctrl+Enter saves."""

    note_saved = Signal(str)

    def __init__(self, title: str, notes: RunNotes, parent: QWidget | None = None) -> None:
        super().__init__("Note", parent)
        self._notes = notes
        self.text = named(QPlainTextEdit(notes.note), "Note")
        self.text.setPlaceholderText("What was tried, and what came of it")
        self.text.setTabChangesFocus(True)
        self.add_standard(QDialogButtonBox.StandardButton.Save, QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self._on_accepted)
        for key in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(key), self, self._on_accepted)
        self.lay_out(heading(title), self.notice, self.text, grow=self.text, size=(460, 300))
        self.text.setFocus()

    def _on_accepted(self) -> None:
        try:
            changed = self._notes.noted(self.text.toPlainText())
        except UsageError as error:
            self.notice.show_error(error)
            return
        if changed != self._notes:
            self.note_saved.emit(changed.note)
        self.accept()
