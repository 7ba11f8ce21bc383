"""Texts that the model wrote at each evaluation: a list of steps, and the text of the chosen one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QEvent, QSignalBlocker, Qt
from PySide6.QtGui import QFont, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QListWidget, QWidget

from app.style.fonts import tabular
from app.widgets.build import code_box, lay_column, named
from app.widgets.empty_note import WithNote
from app.widgets.ruled_splitter import RuledSplitter
from core.formatting import count
from core.machine.devices.names import RankNames

NOTHING: Final = "Text samples appear here after each evaluation."
STEPS_WIDTH: Final = 150
Sample = Mapping[str, Any]


class SamplesView(QWidget):
    """Every sample of the run, the newest on top and shown, until another step is chosen; the prompt is bold."""

    def __init__(self) -> None:
        super().__init__()
        self._samples: list[Sample] = []
        self._follows = True
        self._names = RankNames()
        self.steps = named(QListWidget(), "Steps with a sample")
        self.steps.setFrameShape(QFrame.Shape.NoFrame)
        self.steps.setUniformItemSizes(True)
        self.steps.setFont(tabular(self.steps.font()))
        self.text = code_box("Samples", framed=False)
        self._lay_out()
        self.steps.currentRowChanged.connect(self._on_row_changed)

    def _lay_out(self) -> None:
        panes = RuledSplitter(Qt.Orientation.Horizontal)
        panes.addWidget(self.steps)
        panes.addWidget(self.text)
        panes.setStretchFactor(1, 1)
        panes.setChildrenCollapsible(False)
        panes.setSizes([STEPS_WIDTH, 4 * STEPS_WIDTH])
        self.page = WithNote(panes, NOTHING)
        lay_column(self, self.page)

    def show_names(self, names: RankNames) -> None:
        self._names = names
        for row, sample in enumerate(reversed(self._samples)):
            self.steps.item(row).setText(_where(sample, names))

    def show_samples(self, samples: Sequence[Sample]) -> None:
        """Shows samples, oldest first; does nothing when they are shown already."""
        before = self._samples
        if len(samples) == len(before) and (not samples or (samples[0], samples[-1]) == (before[0], before[-1])):
            return
        shown = self._shown()
        self._samples = list(samples)
        self.page.set_empty(not samples)
        with QSignalBlocker(self.steps):
            # Another run, or older samples were read after newer ones.
            if self._samples[: len(before)] != before:
                self.steps.clear()
            for sample in self._samples[self.steps.count() :]:
                self.steps.insertItem(0, _where(sample, self._names))
            self._follows = self._follows or shown not in self._samples
            newest = len(self._samples) - 1
            self.steps.setCurrentRow(0 if self._follows or shown is None else newest - self._samples.index(shown))
        self._show_text()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._samples:
            bar = self.text.verticalScrollBar()
            place = bar.value()
            # Its heading has the colour of the theme of before.
            self._show_text()
            bar.setValue(place)

    def _shown(self) -> Sample | None:
        row = self.steps.currentRow()
        return self._samples[-1 - row] if 0 <= row < len(self._samples) else None

    def _on_row_changed(self, row: int) -> None:
        self._follows = row == 0
        self._show_text()

    def _show_text(self) -> None:
        self.text.clear()
        sample = self._shown()
        if sample is None:
            return
        cursor = self.text.textCursor()
        head, prompt, plain = QTextCharFormat(), QTextCharFormat(), QTextCharFormat()
        head.setForeground(self.palette().placeholderText())
        prompt.setFontWeight(QFont.Weight.Bold)
        cursor.insertText(f"{_where(sample, self._names)}\n", head)
        cursor.insertText(str(sample.get("prompt", "")), prompt)
        cursor.insertText(str(sample.get("text", "")).rstrip(), plain)
        self.text.moveCursor(QTextCursor.MoveOperation.Start)


def _where(sample: Sample, names: RankNames) -> str:
    step, rank = sample.get("step"), sample.get("rank", 0)
    return f"step {count(step) if isinstance(step, int) else step}" + (f" · {names.short(rank)}" if rank else "")
