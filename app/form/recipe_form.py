"""Form made from a recipe's fields: common ones in three groups of the sheet, the rest under Advanced."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from PySide6.QtWidgets import QWidget

from app.form.advanced import Advanced, GroupFold
from app.form.draft_fields import HOW, IN_SIGHT, WHAT, WHERE, default_texts, grouped_fields
from app.form.field_row import FieldRow
from app.form.field_rows import NO_KINDS, FieldRows, no_remedies
from app.form.remedies import RemediesFor
from app.widgets.build import lay_column
from core.config.fields import FieldSpec
from core.errors import RankdeckError
from core.recipes.manifest import Recipe


class RecipeForm(FieldRows):
    """Rows for a recipe's `FieldSpec`s; the sheet places the pages `what` and `where`."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds = NO_KINDS
        self.what, self.where, self._how = QWidget(), QWidget(), QWidget()
        self._pages = {WHAT: self.what, WHERE: self.where, HOW: self._how}
        for page in self._pages.values():
            lay_column(page)
        self.advanced = Advanced()
        self.more = self.advanced.toggle
        self._recipe: Recipe | None = None
        self.edited.connect(self._on_edited)
        lay_column(self, self._how, self.advanced, spacing=8)

    def set_recipe(self, recipe: Recipe, kinds: Mapping[str, type[FieldRow]] = NO_KINDS) -> None:
        """Rebuild the rows for another recipe; `kinds`: classes of fields with an editor of their own, by name."""
        self._kinds, self._recipe = kinds, recipe
        for row in self.rows.values():
            row.deleteLater()
        self.rows = {}
        groups = grouped_fields(recipe)
        for title, page in self._pages.items():
            _replace(page, self._grid_of(groups.get(title, [])))
            page.setVisible(title in groups)
        rare = {title: specs for title, specs in groups.items() if title not in IN_SIGHT}
        self.advanced.set_folds([self._fold(title, specs) for title, specs in rare.items()])
        self.reset()

    def _fold(self, title: str, specs: list[FieldSpec]) -> GroupFold:
        page = self._grid_of(specs)
        return GroupFold(title, page, [self.rows[spec.name] for spec in specs])

    def _grid_of(self, specs: list[FieldSpec]) -> QWidget:
        page = QWidget()
        self.fill(page, specs, self._kinds)
        return page

    def set_texts(self, texts: Mapping[str, str]) -> None:
        super().set_texts(texts)
        self._follow_defaults(texts.keys())
        self.advanced.show_changed()

    def reset(self) -> None:
        if self._recipe is not None:
            for name, text in default_texts(self._recipe).items():
                self.rows[name].set_default(text)
                self.rows[name].clear()
            self.advanced.show_changed()

    def clear_defaults(self) -> None:
        """Count fields with default values as not set: a finished run doesn't say which were."""
        for row in self.rows.values():
            if not row.is_changed:
                row.clear()

    @property
    def is_set(self) -> bool:
        return any(row.is_set for row in self.rows.values())

    def show_problems(self, problems: Mapping[str, RankdeckError], remedies: RemediesFor = no_remedies) -> None:
        """Mark wrong fields; unfold Advanced if one is there."""
        super().show_problems(problems, remedies)
        self.advanced.reveal({name for name in problems if name in self.rows})

    def show_only(self, names: Collection[str]) -> None:
        super().show_only(names)
        self.advanced.show_found()

    def show_placeholders(self, texts: Mapping[str, str]) -> None:
        for name, row in self.rows.items():
            row.set_placeholder(texts.get(name, ""))

    def _on_edited(self, *_: object) -> None:
        self._follow_defaults()
        self.advanced.show_changed()

    def _follow_defaults(self, kept: Collection[str] = ()) -> None:
        """Take up defaults that depend on other values, such as a pretrained model; set or `kept` fields stay."""
        if self._recipe is None:
            return
        texts = {name: row.text() for name, row in self.rows.items()}
        for name, text in default_texts(self._recipe, texts).items():
            if (row := self.rows.get(name)) is not None and row.default != text:
                untouched = not row.is_set
                row.set_default(text)
                if untouched and name not in kept:
                    row.clear()


def _replace(page: QWidget, content: QWidget) -> None:
    layout = page.layout()
    assert layout is not None
    while (item := layout.takeAt(0)) is not None:
        if (old := item.widget()) is not None:
            old.hide()
            old.deleteLater()
    layout.addWidget(content)
    content.show()
