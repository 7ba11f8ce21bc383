"""Texts that the model wrote at each evaluation, the newest on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtGui import QFont, QFontDatabase, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from app.views.empty_note import WithNote
from app.views.numbers import count

SHOWN: Final = 50
NOTHING: Final = "Sampled text appears here at each evaluation."


class SamplesView(QWidget):
    """The last `SHOWN` samples, each under its step; the prompt is bold."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._steps: list[object] = []
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setAccessibleName("Samples")
        self.text.setTabChangesFocus(True)
        self.text.document().setDocumentMargin(8)
        self.page = WithNote(self.text, NOTHING)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.page)

    def show_samples(self, samples: Sequence[Mapping[str, Any]]) -> None:
        """Shows these (oldest first); does nothing when they are the ones shown."""
        newest = list(samples[-SHOWN:])
        steps = [(sample.get("step"), sample.get("rank"), sample.get("ts")) for sample in newest]
        if steps == self._steps:
            return
        self._steps = list(steps)
        self.page.set_empty(not newest)
        scroll = self.text.verticalScrollBar()
        place = scroll.value()
        self.text.clear()
        cursor = self.text.textCursor()
        head, prompt, plain = QTextCharFormat(), QTextCharFormat(), QTextCharFormat()
        head.setForeground(self.palette().placeholderText())
        prompt.setFontWeight(QFont.Weight.Bold)
        for sample in reversed(newest):
            rank = sample.get("rank", 0)
            step = sample.get("step")
            where = f"step {count(step) if isinstance(step, int) else step}" + (f" · rank {rank}" if rank else "")
            cursor.insertText(f"{where}\n", head)
            cursor.insertText(str(sample.get("prompt", "")), prompt)
            cursor.insertText(str(sample.get("text", "")).rstrip() + "\n\n", plain)
        self.text.moveCursor(QTextCursor.MoveOperation.Start)
        scroll.setValue(place)
