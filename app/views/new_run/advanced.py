"""Advanced settings of the New run sheet: folded away, in groups, with a line to search in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from PySide6.QtWidgets import QLabel, QWidget

from app.views.widgets.build import bold_label, lay_column, lay_row, muted_label, search_line
from app.views.widgets.disclosure import Disclosure
from app.views.widgets.field_row import FieldRow

_INDENT = 16


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under a heading.

    Attributes:
        title: The heading.
        page: Holds the rows.
        rows: From the top down.
    """

    title: str
    page: QWidget
    rows: Sequence[FieldRow]


class Advanced(QWidget):
    """Everything that is rarely set."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._groups: Sequence[Group] = ()
        self._headings: list[QLabel] = []
        self.toggle = Disclosure("Ad&vanced", "Show settings that are rarely changed")
        self.changed = muted_label(wraps=False)
        self.search = search_line("Search settings", "Search settings by name and meaning")
        self.search.textChanged.connect(self.show_found)
        self.none_found = muted_label("No setting matches.")
        self._body = QWidget()
        self._content = QWidget()
        lay_column(self._content)
        line = lay_column(None, self.search, self.none_found, spacing=4, margins=(_INDENT, 0, 0, 0))
        lay_column(self._body, line, self._content, spacing=8)
        head = lay_row(None, self.toggle, None, self.changed, spacing=8, margins=(_INDENT - 6, 0, 0, 0))
        lay_column(self, head, self._body, spacing=8)
        self._body.hide()
        self.toggle.toggled.connect(self._body.setVisible)

    def set_groups(self, groups: Sequence[Group]) -> None:
        """Shows other rows; those of before are deleted a moment later."""
        layout = self._content.layout()
        assert layout is not None
        while (item := layout.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        self._groups, self._headings = groups, []
        for group in groups:
            heading = bold_label(group.title)
            heading.setContentsMargins(_INDENT, 12, 0, 4)
            self._headings.append(heading)
            layout.addWidget(heading)
            layout.addWidget(group.page)
        self.show_found()

    def show_changed(self) -> None:
        """Counts the fields that differ from their defaults."""
        count = sum(row.is_changed and row.applies for group in self._groups for row in group.rows)
        self.changed.setText(f"{count} changed" if count else "")

    def show_found(self) -> None:
        """Shows the rows that the search finds, and headings only over rows."""
        query, any_found = self.search.text(), False
        for group, heading in zip(self._groups, self._headings, strict=True):
            found = [row.search(query) for row in group.rows]
            heading.setVisible(any(found))
            group.page.setVisible(any(found))
            any_found = any_found or any(found)
        self.none_found.setVisible(not any_found)

    def show_wrong(self, names: Collection[str]) -> None:
        """Brings wrong fields into sight: unfolds, and ends a search that hides one."""
        wrong = [row for group in self._groups for row in group.rows if row.spec.name in names]
        if wrong:
            self.toggle.setChecked(True)
        if any(row.applies and not row.is_shown for row in wrong):
            self.search.clear()
