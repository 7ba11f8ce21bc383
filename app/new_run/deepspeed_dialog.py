"""DeepSpeed's configuration of one stage: read it, change it, or go back to Rankdeck's own."""

from __future__ import annotations

import re
from typing import Final

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QFontDatabase, QTextCursor, QTextFormat
from PySide6.QtWidgets import QDialogButtonBox, QPlainTextEdit, QTextEdit, QWidget

from app.form.field_row import ProblemLabel
from app.style.tones import tint
from app.widgets.build import muted_label, named
from app.widgets.dialog import Dialog, Role
from core.launch.deepspeed import check_text, own_text

_LINE: Final = re.compile(r"\bline\s(\d+)", re.IGNORECASE)
_HELP: Final = (
    "“auto” means that the run's settings decide: batch sizes, clipping, precision and offload. A value that you "
    "set here must agree with the run's settings. The configuration is saved with the run."
)


class CodeEditor(QPlainTextEdit):
    """Text in the fixed font, which can mark the line of an error; Tab leaves it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.wrong_line: int | None = None
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)

    def mark_line(self, line: int | None) -> None:
        """Marks a line, counted from 1, as wrong; None marks none."""
        self.wrong_line = line
        block = self.document().findBlockByNumber(-1 if line is None else line - 1)
        marks = []
        if block.isValid():
            mark = QTextEdit.ExtraSelection()
            mark.cursor = QTextCursor(block)
            mark.format.setBackground(tint(self.palette(), "error"))
            mark.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
            marks.append(mark)
        self.setExtraSelections(marks)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.mark_line(self.wrong_line)


class DeepSpeedDialog(Dialog):
    """JSON editor that shows an error and its line at once.

    Args:
        stage: The ZeRO stage it is for.
        text: The person's own configuration; empty: Rankdeck's.

    Signals:
        chosen: The text to use; empty for Rankdeck's own.
    """

    chosen = Signal(str)

    def __init__(self, stage: int, text: str, parent: QWidget | None = None) -> None:
        super().__init__(f"DeepSpeed settings, stage {stage}", parent)
        self._stage = stage
        self._own = own_text(stage).strip()
        self.editor = named(CodeEditor(text.strip() or self._own), "DeepSpeed configuration as JSON")
        self.editor.textChanged.connect(self._check)
        self.problem = ProblemLabel()
        self.back = self.add_button("&Restore default", Role.ResetRole)
        self.use = self.add_button("&Use these", Role.AcceptRole)
        self.add_standard(QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self._on_accepted)
        self.back.clicked.connect(lambda: self.editor.setPlainText(self._own))
        self.lay_out(muted_label(_HELP), self.editor, self.problem, grow=self.editor, size=(560, 620))
        self._check()

    def _check(self) -> None:
        text = self.editor.toPlainText()
        is_own = text.strip() == self._own
        error = None if is_own else check_text(text, self._stage)
        self.problem.set_problem(error)
        place = None if error is None else _LINE.search(error.cause)
        self.editor.mark_line(int(place[1]) if place is not None else None)
        self.use.setEnabled(error is None)
        self.use.setToolTip("" if error is None else "Fix the error above first")
        self.back.setEnabled(not is_own)
        self.back.setToolTip(
            "This already is Rankdeck's default configuration" if is_own else "Restore Rankdeck's default configuration"
        )

    def _on_accepted(self) -> None:
        text = self.editor.toPlainText().strip()
        self.chosen.emit("" if text == self._own else text)
        self.accept()
