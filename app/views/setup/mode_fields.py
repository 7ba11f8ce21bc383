"""Settings below a mode: rows made from `FieldSpec`s, of which only those that apply are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QWidget

from app.views.widgets.field_row import FieldRow
from core.config.run_config import FIELD_BY_NAME
from core.errors import RankdeckError

INDENT: Final = 20
"""What belongs to a mode stands this far to the right of it: under its text, not under its button."""


class ModeFields(QWidget):
    """Rows for some of `RunConfig`'s fields.

    Args:
        names: The fields, from the top down.
        placeholders: What an empty field means, by name.
        wording: What a value is called, by field and value; a field in it becomes a choice of these.
        label_width: Of the column of labels, so that editors stand below each other throughout the panel.
    """

    edited = Signal()

    def __init__(
        self,
        names: Sequence[str],
        placeholders: Mapping[str, str],
        wording: Mapping[str, Mapping[str, str]],
        label_width: int = 0,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._wording = wording
        self._rows: dict[str, FieldRow] = {}
        grid = QGridLayout(self)
        grid.setContentsMargins(INDENT, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        grid.setColumnMinimumWidth(0, label_width)
        grid.setColumnStretch(1, 1)
        line = 0
        for name in names:
            row = self._rows[name] = FieldRow(FIELD_BY_NAME[name], self, wording.get(name))
            row.set_placeholder(placeholders.get(name, ""))
            row.edited.connect(self.edited)
            line = row.place(grid, line)
            if isinstance(row.editor, QCheckBox):
                row.editor.setText(row.spec.label)
                row.label.setText("")
                grid.addWidget(row.editor, line - 2, 0, 1, 3)  # its text is too long for the column of editors

    def texts(self) -> dict[str, str]:
        """What was entered, by field."""
        return {name: row.text() for name, row in self._rows.items()}

    def set_texts(self, texts: Mapping[str, str]) -> None:
        """Shows values; fields that are not named keep theirs."""
        for name, row in self._rows.items():
            if name in texts:
                row.set_text(texts[name])

    def row(self, name: str) -> FieldRow:
        """The row of a field."""
        return self._rows[name]

    def show_only(self, names: Collection[str]) -> None:
        """Hides the rows that mean nothing just now."""
        for name, row in self._rows.items():
            row.set_visible(name in names)

    def show_reasons(self, reasons: Mapping[str, str]) -> None:
        """Disables what means nothing just now, and says why."""
        for name, row in self._rows.items():
            row.set_reason(reasons.get(name, ""))

    def show_problems(self, problems: Mapping[str, RankdeckError]) -> None:
        """Marks what is wrong."""
        for name, row in self._rows.items():
            row.mark(problems.get(name))
