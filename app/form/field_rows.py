"""Rows of a form, by field name: their texts, which are shown, and the problem under each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.form.field_row import FieldRow, field_grid
from app.form.remedies import RemediesFor
from app.widgets.notice_bar import Step
from core.config.fields import FieldSpec
from core.errors import RankdeckError

NO_KINDS: Final[Mapping[str, type[FieldRow]]] = {}


def no_remedies(_error: RankdeckError) -> Sequence[Step]:
    return ()


class FieldRows(QWidget):
    """Several rows, by field name; `edited` follows every change by a person."""

    edited = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, FieldRow] = {}

    def fill(self, page: QWidget, specs: Iterable[FieldSpec], kinds: Mapping[str, type[FieldRow]] = NO_KINDS) -> None:
        """Lay out a row for each field; `kinds`: classes of fields with an editor of their own, by name."""
        grid, line = field_grid(page), 0
        for spec in specs:
            self.rows[spec.name] = row = kinds.get(spec.name, FieldRow)(spec, page)
            row.edited.connect(self.edited)
            line = row.place(grid, line)

    def texts(self) -> dict[str, str]:
        return {name: row.text() for name, row in self.rows.items()}

    def set_texts(self, texts: Mapping[str, str]) -> None:
        for name, row in self.rows.items():
            if name in texts:
                row.set_text(texts[name])

    def show_only(self, names: Collection[str]) -> None:
        for name, row in self.rows.items():
            row.set_visible(name in names)

    def show_problems(self, problems: Mapping[str, RankdeckError], remedies: RemediesFor = no_remedies) -> None:
        for name, row in self.rows.items():
            error = problems.get(name)
            row.mark(error, () if error is None else remedies(error))

    def show_reasons(self, reasons: Mapping[str, str]) -> None:
        for name, row in self.rows.items():
            row.set_reason(reasons.get(name, ""))
