"""Edits of runs' names, tags and notes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtWidgets import QInputDialog, QWidget

from app.runs.run_list import RunListModel
from app.runs.run_row import RunRow
from core.run_folder.notes import RunNotes

ASK_WIDTH: Final = 400


class RunEdits(QObject):
    """Asks for changes of runs' notes.

    Signals:
        changed: Folders, and a function that changes the `RunNotes` of each.
    """

    changed = Signal(object, object)

    def __init__(self, model: RunListModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._model, self._parent = model, parent
        model.renamed.connect(self.rename)

    def edit_name(self, path: Path) -> None:
        record = self._model.record(path)
        if record is not None:
            label, take = "Name (empty: the one it was started with)", functools.partial(self.rename, path)
            self._ask(f"Rename {record.label}", label, record.label, take)

    def rename(self, path: Path, name: str) -> None:
        record = self._model.record(path)
        if record is not None and name.strip() != record.label:
            self.changed.emit((path,), lambda notes: notes.renamed(name))

    def pin(self, paths: Sequence[Path], pinned: bool) -> None:
        self.changed.emit(paths, lambda notes: replace(notes, pinned=pinned))

    def edit_tags(self, rows: Sequence[RunRow]) -> None:
        """Asks for the tags that all of these runs have."""
        before = set.intersection(*(set(row.record.notes.tags) for row in rows))

        def take(text: str) -> None:
            after = set(text.lower().replace(",", " ").split())

            def change(notes: RunNotes) -> RunNotes:
                return notes.tagged(after - before, before - after)

            if after != before:
                self.changed.emit([row.path for row in rows], change)

        title = rows[0].record.label if len(rows) == 1 else f"{len(rows)} runs"
        known = ", ".join(self._model.tags())
        label = "Tags, separated by spaces" + (f" (in use: {known})" if known else "")
        self._ask(f"Tags of {title}", label, " ".join(sorted(before)), take)

    def edit_note(self, row: RunRow) -> None:
        def take(text: str) -> None:
            if text.strip() != row.record.notes.note:
                self.changed.emit((row.path,), lambda notes: notes.noted(text))

        title, hint = f"Note on {row.record.label}", "What was tried, and what came of it"
        self._ask(title, hint, row.record.notes.note, take, has_lines=True)

    def _ask(
        self, title: str, label: str, text: str, take: Callable[[str], object], *, has_lines: bool = False
    ) -> None:
        dialog = QInputDialog(self._parent.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(title)
        dialog.setLabelText(label)
        dialog.setOption(QInputDialog.InputDialogOption.UsePlainTextEditForTextInput, has_lines)
        dialog.setTextValue(text)
        dialog.textValueSelected.connect(take)
        dialog.resize(dialog.sizeHint().expandedTo(QSize(ASK_WIDTH, 0)))
        dialog.open()
