"""Settings below a mode: rows made from `FieldSpec`s, of which only those that apply are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.views.widgets.field_row import FieldRow, field_grid
from app.views.widgets.field_rows import FieldRows
from core.config.run_config import FIELD_BY_NAME


class ModeFields(FieldRows):
    """Rows for some of `RunConfig`'s fields.

    Args:
        names: The fields, from the top down.
        wording: What a value is called, by field and value; a field in it becomes a choice of these.
        label_width: Of the column of labels, so that editors stand below each other throughout the panel.
    """

    def __init__(self, names: Sequence[str], wording: Mapping[str, Mapping[str, str]], label_width: int) -> None:
        super().__init__()
        grid, line = field_grid(self, label_width), 0
        for name in names:
            row = FieldRow(FIELD_BY_NAME[name], self, wording.get(name))
            row.limit_label(label_width)
            line = self.add_row(row, grid, line)
