"""Settings below a mode: rows made from `FieldSpec`s, of which only those that apply are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtWidgets import QCheckBox

from app.views.widgets.build import label_grid
from app.views.widgets.field_row import FieldRow, FieldRows
from core.config.run_config import FIELD_BY_NAME

INDENT: Final = 20
"""What belongs to a mode stands this far to the right of it: under its text, not under its button."""


class ModeFields(FieldRows):
    """Rows for some of `RunConfig`'s fields.

    Args:
        names: The fields, from the top down.
        wording: What a value is called, by field and value; a field in it becomes a choice of these.
        label_width: Of the column of labels, so that editors stand below each other throughout the panel.
    """

    def __init__(self, names: Sequence[str], wording: Mapping[str, Mapping[str, str]], label_width: int) -> None:
        super().__init__()
        grid = label_grid(self, label_width, indent=INDENT)
        line = 0
        for name in names:
            row = FieldRow(FIELD_BY_NAME[name], self, wording.get(name))
            line = self.add_row(row, grid, line)
            if isinstance(row.editor, QCheckBox):
                row.editor.setText(row.spec.label)
                row.label.setText("")
                grid.addWidget(row.editor, line - 2, 0, 1, 3)  # its text is too long for the column of editors

    def show_reasons(self, reasons: Mapping[str, str]) -> None:
        """Disables what means nothing just now, and says why."""
        for name, row in self.rows.items():
            row.set_reason(reasons.get(name, ""))
