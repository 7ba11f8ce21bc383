"""DeepSpeed's configuration of one stage: read it, change it, or go back to Rankdeck's own."""

from __future__ import annotations

import re
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPushButton, QWidget

from app.views.widgets.build import lay_column, muted_label, named
from app.views.widgets.field_row import ProblemLabel
from app.views.widgets.first_size import set_first_size
from app.views.widgets.numbered_editor import NumberedEditor
from core.launch.deepspeed import check_text, own_text

_LINE: Final = re.compile(r"\bline\s(\d+)", re.IGNORECASE)
_HELP = (
    "“auto” means that the run's settings decide: batch sizes, clipping, precision and offload. A value that you "
    "set here must agree with the run's settings. The configuration is saved with the run."
)


class DeepSpeedDialog(QDialog):
    """An editor for JSON that says at once what is wrong, and in which line.

    Args:
        stage: The ZeRO stage it is for.
        text: The person's own configuration; empty: Rankdeck's.

    Signals:
        chosen: The text to use; empty for Rankdeck's own.
    """

    chosen = Signal(str)

    def __init__(self, stage: int, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"DeepSpeed settings, stage {stage}")
        self._stage = stage
        self._own = own_text(stage).strip()
        self.editor = named(NumberedEditor(text.strip() or self._own), "DeepSpeed configuration as JSON")
        self.editor.textChanged.connect(self._check)
        self.problem = ProblemLabel()
        buttons = QDialogButtonBox()
        self.use = QPushButton("&Use these")
        self.back = QPushButton("&Restore default")
        buttons.addButton(self.back, QDialogButtonBox.ButtonRole.ResetRole)  # Tab takes them in this order
        buttons.addButton(self.use, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel).setIcon(QIcon())
        buttons.accepted.connect(self._on_accepted)
        buttons.rejected.connect(self.reject)
        self.back.clicked.connect(lambda: self.editor.setPlainText(self._own))
        parts = (muted_label(_HELP), self.editor, self.problem, buttons)
        lay_column(self, *parts, spacing=8, margins=(16, 16, 16, 12), grow=self.editor)
        set_first_size(self, 560, 620)
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
