"""Advanced settings of the New run sheet: folded away, in groups that unfold one by one, with a line to search in."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtWidgets import QWidget

from app.form.field_row import FieldRow
from app.widgets.build import lay_column, lay_row, muted_label, search_line
from app.widgets.disclosure import Disclosure

_INDENT = 16


class GroupFold(QWidget):
    """A heading that unfolds its `page` of rows, with the number of rows that differ from their defaults."""

    def __init__(self, title: str, page: QWidget, rows: Sequence[FieldRow]) -> None:
        super().__init__()
        self.title, self.page, self.rows = title, page, rows
        self.toggle = Disclosure(title.replace("&", "&&"), f"Show the settings of {title}")
        self.changed = muted_label(wraps=False)
        head = lay_row(None, self.toggle, None, self.changed, spacing=8, margins=(_INDENT - 6, 0, 0, 0))
        lay_column(self, head, page, spacing=4)
        self.toggle.toggled.connect(page.setVisible)
        page.hide()

    def show_changed(self) -> int:
        count = sum(row.is_changed and row.applies for row in self.rows)
        rows = sum(row.applies for row in self.rows)
        self.changed.setText(f"{count} changed" if count else f"{rows} setting{'' if rows == 1 else 's'}")
        return count

    def show_found(self, query: str) -> bool:
        """Show only rows that match a search, unfolded; return whether there are any."""
        found = [row.search(query) for row in self.rows]
        self.page.setVisible(bool(query) or self.toggle.isChecked())
        self.setVisible(any(found))
        return any(found)


class Advanced(QWidget):
    """The rarely used settings."""

    def __init__(self) -> None:
        super().__init__()
        self.folds: Sequence[GroupFold] = ()
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

    def set_folds(self, folds: Sequence[GroupFold]) -> None:
        layout = self._content.layout()
        assert layout is not None
        while (item := layout.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        unfolded = {fold.title for fold in self.folds if fold.toggle.isChecked()}
        self.folds = folds
        for fold in folds:
            fold.toggle.setChecked(fold.title in unfolded)
            layout.addWidget(fold)
        self.show_found()

    def show_changed(self) -> None:
        """Show how many fields differ from their defaults, in each group and in all."""
        count = sum(fold.show_changed() for fold in self.folds)
        self.changed.setText(f"{count} changed" if count else "")

    def show_found(self) -> None:
        """Show the rows that match the search, and groups only with rows."""
        query = self.search.text().strip()
        found = [fold.show_found(query) for fold in self.folds]
        self.none_found.setVisible(not any(found))
        self.show_changed()

    def reveal(self, names: Collection[str]) -> None:
        """Unfold the groups of fields, and end a search that hides one."""
        for fold in self.folds:
            rows = [row for row in fold.rows if row.spec.name in names]
            if rows:
                self.toggle.setChecked(True)
                fold.toggle.setChecked(True)
            if any(row.applies and not row.is_shown for row in rows):
                self.search.clear()
