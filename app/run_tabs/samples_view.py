"""Texts that the model wrote at each evaluation: a list of steps, and the text of those that are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QEvent, QSignalBlocker, Qt
from PySide6.QtGui import QFont, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListWidget, QListWidgetItem, QWidget

from app.style.fonts import tabular
from app.widgets.build import code_box, lay_column, named
from app.widgets.empty_note import WithNote
from app.widgets.ruled_splitter import RuledSplitter
from core.formatting import count
from core.machine.devices.names import RankNames

NOTHING: Final = "Text samples appear here after each evaluation."
STEPS_WIDTH: Final = 150
# Of the chosen ones; all of a long run's in one document would hold up the window.
SHOWN_AT_ONCE: Final = 50
Sample = Mapping[str, Any]


class SamplesView(QWidget):
    """Every sample of the run, the newest on top and shown, until other steps are chosen; the prompt is bold."""

    def __init__(self) -> None:
        super().__init__()
        self._samples: list[Sample] = []
        self._keys: list[object] = []
        self._follows = True
        self._names = RankNames()
        self.steps = named(QListWidget(), "Steps with a sample")
        self.steps.setFrameShape(QFrame.Shape.NoFrame)
        self.steps.setUniformItemSizes(True)
        self.steps.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.steps.setFont(tabular(self.steps.font()))
        self.text = code_box("Samples", framed=False)
        self._lay_out()
        self.steps.itemSelectionChanged.connect(self._on_selection_changed)

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
        for row in range(self.steps.count()):
            item = self.steps.item(row)
            item.setText(_where(self._samples[item.data(Qt.ItemDataRole.UserRole)], names))

    def show_samples(self, samples: Sequence[Sample]) -> None:
        """Shows samples, oldest first; does nothing when they are shown already."""
        ends = [_key(samples[0]), _key(samples[-1])] if samples else []
        if len(samples) == len(self._keys) and ends == [*self._keys[:1], *self._keys[-1:]]:
            return
        known, self._keys = self._keys, [_key(sample) for sample in samples]
        chosen = [known[item.data(Qt.ItemDataRole.UserRole)] for item in self.steps.selectedItems()]
        self._samples = list(samples)
        self.page.set_empty(not samples)
        with QSignalBlocker(self.steps):
            if self._keys[: len(known)] != known:  # another run, or older samples were read after newer ones
                self.steps.clear()
                known = []
            for number in range(len(known), len(self._keys)):
                self.steps.insertItem(0, self._item(number))
            chosen = [key for key in chosen if key in self._keys]
            self._follows = self._follows or not chosen
            self._choose(self._keys[-1:] if self._follows else chosen)
        self._show_chosen()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._samples:
            bar = self.text.verticalScrollBar()
            place = bar.value()
            self._show_chosen()  # its headings have the colour of the theme of before
            bar.setValue(place)

    def _item(self, number: int) -> QListWidgetItem:
        sample = self._samples[number]
        item = QListWidgetItem(_where(sample, self._names))
        item.setData(Qt.ItemDataRole.UserRole, number)
        return item

    def _choose(self, keys: Sequence[object]) -> None:
        self.steps.clearSelection()
        for row in range(self.steps.count()):
            item = self.steps.item(row)
            if self._keys[item.data(Qt.ItemDataRole.UserRole)] in keys:
                item.setSelected(True)
                if self.steps.currentRow() != row and len(keys) == 1:
                    self.steps.setCurrentItem(item)

    def _on_selection_changed(self) -> None:
        rows = [self.steps.row(item) for item in self.steps.selectedItems()]
        self._follows = rows == [0]
        self._show_chosen()

    def _show_chosen(self) -> None:
        chosen = [self._samples[item.data(Qt.ItemDataRole.UserRole)] for item in self._chosen_items()]
        self.text.clear()
        cursor = self.text.textCursor()
        head, prompt, plain = QTextCharFormat(), QTextCharFormat(), QTextCharFormat()
        head.setForeground(self.palette().placeholderText())
        prompt.setFontWeight(QFont.Weight.Bold)
        for sample in chosen[:SHOWN_AT_ONCE]:
            cursor.insertText(f"{_where(sample, self._names)}\n", head)
            cursor.insertText(str(sample.get("prompt", "")), prompt)
            cursor.insertText(str(sample.get("text", "")).rstrip() + "\n\n", plain)
        if len(chosen) > SHOWN_AT_ONCE:
            cursor.insertText(f"… and {count(len(chosen) - SHOWN_AT_ONCE)} more", head)
        self.text.moveCursor(QTextCursor.MoveOperation.Start)

    def _chosen_items(self) -> list[QListWidgetItem]:
        return sorted(self.steps.selectedItems(), key=self.steps.row)


def _key(sample: Sample) -> object:
    return sample.get("step"), sample.get("rank"), sample.get("ts")


def _where(sample: Sample, names: RankNames) -> str:
    step, rank = sample.get("step"), sample.get("rank", 0)
    return f"step {count(step) if isinstance(step, int) else step}" + (f" · {names.short(rank)}" if rank else "")
