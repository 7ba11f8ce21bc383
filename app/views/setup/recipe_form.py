"""The form made from a recipe's fields: common ones first, the rest folded under "More"."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QToolButton, QVBoxLayout, QWidget

from app.views.style.icons import icon
from app.views.widgets.field_row import FieldRow
from core.config.fields import FieldSpec
from core.errors import RankdeckError

LABEL_WIDTH = 120
"""Room for the longest label of one line, so that editors of all sections stand in one column."""


class RecipeForm(QWidget):
    """Rows for `FieldSpec`s. What is entered is kept as text; `edited` follows every change by the person."""

    edited = Signal()
    more_toggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: dict[str, FieldRow] = {}
        self._kinds: Mapping[str, type[FieldRow]] = {}
        self._common = QWidget()
        self._rest = QWidget()
        self.more = QToolButton()
        self.more.setText("M&ore settings")
        self.more.setIcon(icon("chevron-right"))
        self.more.setCheckable(True)
        self.more.setAutoRaise(True)
        self.more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.more.setToolTip("Show settings that are rarely changed")
        self.more.toggled.connect(self._on_more_toggled)
        self._rest.setVisible(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._common)
        column.addWidget(self.more)
        column.addWidget(self._rest)

    def set_fields(self, fields: Sequence[FieldSpec], kinds: Mapping[str, type[FieldRow]] | None = None) -> None:
        """Rebuilds the rows for another recipe.

        Args:
            fields: Its fields, from the top down.
            kinds: Fields that are edited in a way of their own, by name.
        """
        self._kinds = kinds or {}
        for row in self._rows.values():
            row.deleteLater()
        self._rows = {}
        self._common = self._rebuilt(self._common, [spec for spec in fields if spec.common])
        self._rest = self._rebuilt(self._rest, [spec for spec in fields if not spec.common])
        self._rest.setVisible(self.more.isChecked())

    def _rebuilt(self, old: QWidget, specs: Sequence[FieldSpec]) -> QWidget:
        page = QWidget(self)
        grid = QGridLayout(page)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        grid.setColumnMinimumWidth(0, LABEL_WIDTH)
        grid.setColumnStretch(1, 1)
        next_row = 0
        for spec in specs:
            row = self._kinds.get(spec.name, FieldRow)(spec, page)
            row.label.setWordWrap(row.label.sizeHint().width() > LABEL_WIDTH)  # else it would push editors out of sight
            row.edited.connect(self._on_edited)
            self._rows[spec.name] = row
            next_row = row.place(grid, next_row)
        layout = self.layout()
        if layout is not None:
            layout.replaceWidget(old, page)
        old.hide()  # it is deleted a moment later
        old.deleteLater()
        return page

    def row(self, name: str) -> FieldRow:
        """The row of a field."""
        return self._rows[name]

    def names(self) -> list[str]:
        """The fields that have a row."""
        return list(self._rows)

    def leave_out(self, names: Collection[str]) -> None:
        """Hides the rows that mean nothing just now."""
        for name, row in self._rows.items():
            row.set_visible(name not in names)

    def texts(self) -> dict[str, str]:
        """What stands in each field."""
        return {name: row.text() for name, row in self._rows.items()}

    def set_texts(self, texts: Mapping[str, str]) -> None:
        """Fills fields; those not named stay as they are."""
        for name, text in texts.items():
            if name in self._rows:
                self._rows[name].set_text(text)

    def show_problems(self, problems: Mapping[str, RankdeckError]) -> None:
        """Marks the wrong fields with their reason; unfolds "More" if one is there."""
        for name, row in self._rows.items():
            row.mark(problems.get(name))
        if any(name in problems and not row.spec.common for name, row in self._rows.items()):
            self.more.setChecked(True)

    def show_placeholders(self, texts: Mapping[str, str]) -> None:
        """Shows, greyed, what empty fields will be."""
        for name, row in self._rows.items():
            row.set_placeholder(texts.get(name, ""))

    def _on_edited(self, _name: str) -> None:
        self.edited.emit()

    def _on_more_toggled(self, on: bool) -> None:
        self.more.setIcon(icon("chevron-down" if on else "chevron-right"))
        self._rest.setVisible(on)
        self.more_toggled.emit(on)
