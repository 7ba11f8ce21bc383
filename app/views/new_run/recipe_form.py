"""The form made from a recipe's fields: common ones first, the rest folded under "More"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton, QWidget

from app.views.style.icons import icon
from app.views.widgets.build import label_grid, lay_column
from app.views.widgets.field_row import FieldRow, FieldRows
from core.config.fields import FieldSpec
from core.errors import RankdeckError

LABEL_WIDTH = 120
"""Room for the longest label of one line, so that editors of all sections stand in one column."""


class RecipeForm(FieldRows):
    """Rows for a recipe's `FieldSpec`s; those that are rarely changed are folded away."""

    more_toggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
        self._column = lay_column(self, self._common, self.more, self._rest, spacing=8)

    def set_fields(self, fields: Sequence[FieldSpec], kinds: Mapping[str, type[FieldRow]] | None = None) -> None:
        """Rebuilds the rows for another recipe.

        Args:
            fields: Its fields, from the top down.
            kinds: Fields that are edited in a way of their own, by name.
        """
        self._kinds = kinds or {}
        for row in self.rows.values():
            row.deleteLater()
        self.rows = {}
        self._common = self._rebuilt(self._common, [spec for spec in fields if spec.common])
        self._rest = self._rebuilt(self._rest, [spec for spec in fields if not spec.common])
        self._rest.setVisible(self.more.isChecked())

    def _rebuilt(self, old: QWidget, specs: Sequence[FieldSpec]) -> QWidget:
        page = QWidget(self)
        grid = label_grid(page, LABEL_WIDTH)
        line = 0
        for spec in specs:
            row = self._kinds.get(spec.name, FieldRow)(spec, page)
            row.label.setWordWrap(row.label.sizeHint().width() > LABEL_WIDTH)  # else it would push editors out of sight
            line = self.add_row(row, grid, line)
        self._column.replaceWidget(old, page)
        old.hide()  # it is deleted a moment later
        old.deleteLater()
        return page

    def show_problems(self, problems: Mapping[str, RankdeckError]) -> None:
        """Marks the wrong fields with their reason; unfolds "More" if one is there."""
        super().show_problems(problems)
        if any(name in problems and not row.spec.common for name, row in self.rows.items()):
            self.more.setChecked(True)

    def show_placeholders(self, texts: Mapping[str, str]) -> None:
        """Shows, greyed, what empty fields will be."""
        for name, row in self.rows.items():
            row.set_placeholder(texts.get(name, ""))

    def _on_more_toggled(self, on: bool) -> None:
        self.more.setIcon(icon("chevron-down" if on else "chevron-right"))
        self._rest.setVisible(on)
        self.more_toggled.emit(on)
