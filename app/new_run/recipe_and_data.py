"""Recipe, data and name fields of the New run sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QWidget

from app.draft.draft import RUNS_DIR, Draft
from app.form.field_row import EDITOR_HEIGHT, ProblemLabel, field_grid
from app.form.remedies import Remedies, RemediesFor
from app.new_run.data_field import DataField
from app.widgets.build import lay_column, muted_label, named, narrow
from app.widgets.steady import ComboBox
from core.errors import RankdeckError
from core.recipes.manifest import Recipe


class RecipeAndData(QWidget):
    """The first group of the sheet, with `more` of the recipe's fields, such as its model.

    Attributes:
        listed: All recipes.
        usable: The recipes that can be used, by name; where two have one name, the first.
    """

    def __init__(self, more: QWidget) -> None:
        super().__init__()
        self.recipe = named(ComboBox(), "Recipe")
        self.recipe.setObjectName("field_recipe")
        narrow(self.recipe)
        self._description = muted_label()
        self._is_low = False
        self.unusable = named(QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText), "Recipes that cannot be used")
        self.unusable.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.recipe_problem, self.recipe_remedies = ProblemLabel(), Remedies()
        self.listed: list[Recipe] = []
        self.usable: dict[str, Recipe] = {}
        self.data = DataField()
        self._data_label = _label("D&ata", self.data.line)
        self.run_name = named(QLineEdit(placeholderText="from recipe, data and time"), "Name of the run")
        self.run_name.setObjectName("field_name")
        self.run_name.setToolTip("What the run will be called. You can rename it later.")
        self.name_problem = ProblemLabel()
        self.place_problem = ProblemLabel()
        for editor in (self.recipe, self.data.line, self.run_name, self._data_label):
            editor.setMinimumHeight(EDITOR_HEIGHT)
        lay_column(self, self._first(), more, self._last(), spacing=4)

    def _first(self) -> QWidget:
        page = QWidget()
        grid = field_grid(page)
        grid.addWidget(_label("Reci&pe", self.recipe), 0, 1)
        grid.addWidget(self.recipe, 0, 2)
        below = (self._description, self.unusable, self.recipe_problem, self.recipe_remedies)
        for row, widget in enumerate(below, 1):
            grid.addWidget(widget, row, 1, 1, 2)
        grid.addWidget(self._data_label, len(below) + 1, 1, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self.data, len(below) + 1, 2)
        return page

    def _last(self) -> QWidget:
        page = QWidget()
        grid = field_grid(page)
        grid.addWidget(_label("Name", self.run_name), 0, 1)
        grid.addWidget(self.run_name, 0, 2)
        grid.addWidget(self.name_problem, 1, 1, 1, 2)
        grid.addWidget(self.place_problem, 2, 1, 1, 2)
        return page

    def set_recipes(self, recipes: Sequence[Recipe]) -> None:
        """Offer recipes; the chosen one stays if it is among them."""
        kept = str(self.recipe.currentData() or "")
        self.listed = list(recipes)
        self.usable = {recipe.name: recipe for recipe in reversed(recipes) if not recipe.problem}
        # The recipe of the demo run, whatever else there is; where it is missing, the first that can be used.
        names = (kept, Draft().recipe, *self.usable)
        rows = (self.recipe.findData(name) for name in names if name in self.usable)
        with QSignalBlocker(self.recipe):
            self._fill(recipes)
            self.recipe.setCurrentIndex(next((row for row in rows if row >= 0), 0))

    def chosen(self) -> Recipe | None:
        return self.usable.get(str(self.recipe.currentData()))

    def choose(self, name: str) -> None:
        if name in self.usable:
            self.recipe.setCurrentIndex(self.recipe.findData(name))

    def _fill(self, recipes: Sequence[Recipe]) -> None:
        self.recipe.clear()
        for recipe in recipes:
            self.recipe.addItem(recipe.title + (" (cannot be used)" if recipe.problem else ""), recipe.name)
            row = self.recipe.count() - 1
            tip = recipe.problem or recipe.description
            self.recipe.setItemData(row, tip, Qt.ItemDataRole.ToolTipRole)
            if recipe.problem:
                self.recipe.setItemData(row, 0, Qt.ItemDataRole.UserRole - 1)  # Qt's own way to disable an item
        broken = [f"{recipe.folder.name} cannot be used: {recipe.problem}" for recipe in recipes if recipe.problem]
        self.unusable.setText("\n".join(broken))
        self.unusable.setVisible(bool(broken))

    def show_recipe(self, recipe: Recipe | None) -> None:
        """Show the recipe's description, and its data field where it takes data."""
        self._description.setText("" if recipe is None else recipe.description)
        self._show_description()
        if recipe is not None:
            self.recipe.setToolTip(recipe.description)
            self.data.ask(not recipe.own_samples)
            self._data_label.setVisible(not recipe.self_contained)
            self.data.setVisible(not recipe.self_contained)

    def set_low(self, is_low: bool) -> None:
        """Hide the description, which is in the tooltip too, where there is little room."""
        self._is_low = is_low
        self._show_description()

    def _show_description(self) -> None:
        self._description.setVisible(bool(self._description.text()) and not self._is_low)

    def show_problems(self, problems: Mapping[str, RankdeckError], remedies: RemediesFor) -> None:
        on_recipe, on_data = problems.get("recipe"), problems.get("dataset_file")
        self.recipe_problem.set_problem(on_recipe)
        self.recipe_remedies.set_steps(() if on_recipe is None else remedies(on_recipe))
        self.data.show_problem(on_data, () if on_data is None else remedies(on_data))
        self.name_problem.set_problem(problems.get("name"))
        self.place_problem.set_problem(problems.get(RUNS_DIR))


def _label(text: str, buddy: QWidget) -> QLabel:
    label = QLabel(text)
    label.setContentsMargins(0, 0, 8, 0)
    label.setBuddy(buddy)
    return label
