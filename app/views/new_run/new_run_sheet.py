"""New run sheet: the next run, and its batch arithmetic, which is always in sight."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QComboBox, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.state.draft import CheckedDraft, Draft, default_texts, form_fields, settings_without_meaning
from app.state.recipe_drafts import RecipeDrafts
from app.views.new_run.data_field import DataField
from app.views.new_run.device_picker import DevicePicker
from app.views.new_run.mode_picker import ModePicker
from app.views.new_run.recipe_form import RecipeForm
from app.views.new_run.script_rows import SCRIPT_ROWS, ChartsRow, InterpreterRow
from app.views.new_run.summary_lines import SummaryLines
from app.views.widgets.action_buttons import PrimaryActionButton
from app.views.widgets.build import bold_label, icon_button, lay_column, lay_row, muted_label, named, narrow, scrolled
from app.views.widgets.notice_bar import NoticeBar
from core.errors import ConfigError, RankdeckError
from core.machine.interpreters import Interpreter
from core.recipes.manifest import Recipe
from core.recipes.user_script import RECIPE as USER_SCRIPT

MIN_WIDTH: Final = 320


class NewRunSheet(QWidget):
    """Recipe, data, devices, mode and fields. It holds a `Draft`; whether that is right is decided elsewhere.

    Attributes:
        drafts: What was set for the other recipes.
    """

    draft_changed = Signal()
    charts_requested = Signal()
    close_requested = Signal()

    def __init__(self, recipes: Sequence[Recipe], start: QAction | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._listed = list(recipes)
        self._recipes = _usable(recipes)
        self._interpreters: tuple[Interpreter, ...] = ()
        self._problems: Mapping[str, RankdeckError] = {}
        self._shown_recipe = ""
        self.drafts = RecipeDrafts()
        self.notice = NoticeBar()
        self.needs = NoticeBar()
        self.recipe = named(QComboBox(), "Recipe")
        self.recipe.setObjectName("field_recipe")
        self.data = DataField()
        self.devices = DevicePicker()
        self.mode = ModePicker()
        self.form = RecipeForm()
        self._description = muted_label()
        self.unusable = named(QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText), "Recipes that cannot be used")
        self.unusable.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.summary = SummaryLines()
        self._fill_recipes(recipes)
        self.recipe.setCurrentIndex(self._first_row())
        self._lay_out(start)
        self._show_recipe()
        self.recipe.currentIndexChanged.connect(self._on_recipe_changed)
        self.mode.shown_changed.connect(self._show_settings_of_mode)
        self.summary.fix_requested.connect(self._show_first_problem)
        self.mode.deepspeed_requested.connect(self._on_deepspeed_requested)
        for edited in (self.data.edited, self.devices.selection_changed, self.mode.changed, self.form.edited):
            edited.connect(self.draft_changed)

    def _fill_recipes(self, recipes: Sequence[Recipe]) -> None:
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

    def _first_row(self) -> int:
        """The recipe of the demo run, whatever else there is; where it is missing, the first that can be used."""
        names = [Draft().recipe, *self._recipes]
        return next((row for name in names if name in self._recipes and (row := self.recipe.findData(name)) >= 0), 0)

    def set_recipes(self, recipes: Sequence[Recipe]) -> None:
        """Takes over the recipes there are now: one was added to the folder, changed or removed.

        What is chosen stays chosen; where its form has changed, what was typed stays in the fields that are left.
        """
        if list(recipes) == self._listed:
            return
        before, kept = self.chosen_recipe(), self.draft()
        self._listed, self._recipes = list(recipes), _usable(recipes)
        with QSignalBlocker(self.recipe):
            self.recipe.clear()
            self._fill_recipes(recipes)
            row = self.recipe.findData(kept.recipe) if kept.recipe in self._recipes else -1
            self.recipe.setCurrentIndex(row if row >= 0 else self._first_row())
        now = self.chosen_recipe()
        if now == before:
            return
        if now is None or now.name != kept.recipe:
            self.drafts.keep(kept)
        self._show_recipe()
        if now is not None and before is not None and now.name == before.name:
            shown, defaults = default_texts(before), default_texts(now)
            typed = {name: text for name, text in kept.fields.items() if text != shown.get(name) and name in defaults}
            self.form.set_texts({**defaults, **typed})
        self.draft_changed.emit()

    def _lay_out(self, start: QAction | None) -> None:
        content = QWidget()
        column = QVBoxLayout(content)
        column.setSpacing(4)
        _section(column, "Reci&pe", self.recipe, self.recipe)
        column.addWidget(self._description)
        column.addWidget(self.unusable)
        column.addWidget(self.needs)
        self._data_label = _section(column, "D&ata", self.data, self.data.line)
        _section(column, "Devices", self.devices, None)
        _section(column, "Mode", self.mode, None)
        _section(column, "Settings", self.form, None)
        column.addStretch(1)
        self._scroll = scroll = scrolled(content)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        _keep_width(scroll, column)
        close = icon_button("close", "Close New run (Esc)", self.close_requested.emit, "Close New run")
        close.setAutoRaise(True)
        head = lay_row(None, bold_label("New run"), None, close, margins=(12, 8, 8, 4))
        foot = lay_row(None, None, margins=(12, 0, 12, 12))
        if start is not None:
            foot.addWidget(PrimaryActionButton(start))
        lay_column(self, head, self.notice, scroll, self.summary, foot, grow=scroll)
        self.setMinimumWidth(MIN_WIDTH)
        narrow(self.recipe)

    def chosen_recipe(self) -> Recipe | None:
        """The recipe that is chosen; None when there is no usable one."""
        return self._recipes.get(str(self.recipe.currentData()))

    def draft(self) -> Draft:
        """What the panel holds."""
        return Draft(
            recipe=str(self.recipe.currentData() or ""),
            dataset=self.data.path(),
            devices=tuple(device.uuid for device in self.devices.selected()),
            mode=self.mode.mode(),
            mode_fields=self.mode.texts(),
            fields=self.form.texts(),
        )

    def open_draft(self, draft: Draft, keep_devices: bool = False) -> None:
        """As `set_draft`, for the draft that was shown when the window was closed: nothing is kept of what is shown."""
        self._shown_recipe = ""
        if draft.recipe not in self._recipes:  # its folder may come back
            self.drafts.keep(draft)
        self.set_draft(draft, keep_devices)
        self._shown_recipe = str(self.recipe.currentData() or "")

    def set_draft(self, draft: Draft, keep_devices: bool = False) -> None:
        """Fills the panel; `keep_devices` leaves the ticks as they are."""
        if self._shown_recipe not in ("", draft.recipe):
            self.drafts.keep(dataclasses.replace(self.draft(), recipe=self._shown_recipe))
        row = self.recipe.findData(draft.recipe)
        if row >= 0 and row != self.recipe.currentIndex():
            with QSignalBlocker(self.recipe):
                self.recipe.setCurrentIndex(row)
            self._show_recipe()
        self.data.set_path(draft.dataset)
        self.mode.set_mode(draft.mode, draft.mode_fields)
        self.form.set_texts(draft.fields)
        if not keep_devices:
            self.devices.select(draft.devices)
        self.draft_changed.emit()

    def show_checked(self, checked: CheckedDraft) -> None:
        """Marks what is wrong and shows what empty fields will be."""
        self.form.show_placeholders(checked.placeholders)
        self.show_problems(checked.problems)

    def show_problems(self, problems: Mapping[str, RankdeckError]) -> None:
        """Marks the fields that are wrong, and no others."""
        self._problems = problems
        self.form.show_problems(problems)
        self.devices.show_problem(problems.get("devices"))
        self.mode.show_problems(problems)

    def show_refusal(self, error: ConfigError) -> None:
        """Marks the field that a start was refused for, and brings it into sight with the cursor in it."""
        self.show_problems({error.field: error})
        if error.field in self.form.rows:
            self.go_to(error.field)

    def _show_first_problem(self) -> None:
        """Brings the topmost wrong setting into sight."""
        order = ["recipe", "dataset_file", "devices", *self.form.rows]
        wrong = [name for name in order if name in self._problems] or list(self._problems)
        if wrong:
            self.go_to(wrong[0])

    def choose_recipe(self, name: str) -> None:
        """Shows another recipe, as if it had been picked from the list."""
        row = self.recipe.findData(name)
        if row >= 0:
            self.recipe.setCurrentIndex(row)

    def go_to(self, field: str) -> None:
        """Brings a setting into sight with the cursor in it."""
        if field in self.form.rows:
            editor: QWidget = self.form.rows[field].editor
            shown: QWidget = self.form.rows[field].problem
        else:
            shown = {"recipe": self.recipe, "dataset_file": self.data, "devices": self.devices}.get(field, self.mode)
            editor = self.data.line if shown is self.data else shown
        editor.setFocus(Qt.FocusReason.OtherFocusReason)
        # Unfolded and with its reason it has another place, from the next turn of the event loop on.
        QTimer.singleShot(0, shown, lambda: self._scroll.ensureWidgetVisible(shown))

    def _on_deepspeed_requested(self) -> None:
        from app.views.dialogs.deepspeed_dialog import DeepSpeedDialog  # here: the window opens without it

        texts = self.mode.texts()
        dialog = DeepSpeedDialog(int(texts["zero_stage"]), texts["deepspeed_config"], self)
        dialog.chosen.connect(self.mode.set_deepspeed)
        dialog.open()

    def _show_recipe(self) -> None:
        recipe = self.chosen_recipe()
        self._shown_recipe = recipe.name if recipe is not None else ""
        self._description.setVisible(recipe is not None)
        if recipe is not None:
            self._description.setText(recipe.description)
            self.form.set_fields(form_fields(recipe), SCRIPT_ROWS if recipe.name == USER_SCRIPT else None)
            self.form.set_texts(default_texts(recipe))
            self.data.ask(not recipe.own_samples)
            self._data_label.setVisible(not recipe.self_contained)
            self.data.setVisible(not recipe.self_contained)
            row = self.form.rows.get("charts")
            if isinstance(row, ChartsRow):
                row.table_requested.connect(self.charts_requested)
            self.show_interpreters(self._interpreters)
            self._show_settings_of_mode()

    def show_interpreters(self, found: Sequence[Interpreter]) -> None:
        """The Pythons that are offered for a script."""
        self._interpreters = tuple(found)
        row = self.form.rows.get("python")
        if isinstance(row, InterpreterRow):
            row.show_interpreters(found)

    def choose_charts(self, seen: Mapping[str, str], unread: Mapping[str, str]) -> None:
        """Opens the table of charts.

        Args:
            seen: Printed name → chart in the run that is shown.
            unread: Printed name → its last numbers, where nothing could be charted.
        """
        from app.views.dialogs.charts_dialog import ChartsDialog  # here: the window opens without it

        dialog = ChartsDialog(self.form.rows["charts"].text(), seen, self, unread=unread)
        dialog.chosen.connect(lambda text: self.set_field("charts", text))
        dialog.open()

    def set_field(self, name: str, text: str) -> None:
        """Fills a field of the form as if it had been typed; does nothing where the recipe has none of that name."""
        row = self.form.rows.get(name)
        if row is not None:
            row.set_text(text)
            row.edited.emit(name)

    def _show_settings_of_mode(self) -> None:
        mode = self.mode
        without = settings_without_meaning(mode.shown_mode(), mode.texts(), mode.ranks())
        self.form.show_only(self.form.rows.keys() - without)

    def _on_recipe_changed(self, _row: int) -> None:
        """Shows what was last set for the recipe; for a new one its defaults, on the data and in the mode chosen."""
        left = dataclasses.replace(self.draft(), recipe=self._shown_recipe)
        self.drafts.keep(left)
        self._show_recipe()
        recipe = self.chosen_recipe()
        if recipe is not None:
            fresh = dataclasses.replace(left, recipe=recipe.name, fields=default_texts(recipe))
            self.set_draft(self.drafts.kept(recipe.name) or fresh, keep_devices=True)


def _usable(recipes: Sequence[Recipe]) -> dict[str, Recipe]:
    """By name; where two have one name, the first."""
    return {recipe.name: recipe for recipe in reversed(recipes) if not recipe.problem}


def _section(column: QVBoxLayout, title: str, body: QWidget, buddy: QWidget | None) -> QLabel:
    label = bold_label(title, buddy)
    if column.count():
        column.addSpacing(8)
    column.addWidget(label)
    column.addWidget(body)
    return label


def _keep_width(scroll: QScrollArea, column: QVBoxLayout) -> None:
    """Gives a scroll bar its room beforehand, so that nothing moves sideways when it comes and goes."""
    bar = scroll.verticalScrollBar()

    def leave_room(low: int, high: int) -> None:
        column.setContentsMargins(12, 8, 4 if high > low else 4 + bar.sizeHint().width(), 8)

    bar.rangeChanged.connect(leave_room)
    leave_room(0, 0)
