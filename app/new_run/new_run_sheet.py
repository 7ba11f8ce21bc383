"""New run sheet: recipe, data, devices, mode and settings of the next run, with their result at its foot."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QAction, QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLabel, QLayout, QScrollArea, QWidget

from app.devices.device_picker import BalanceCard, DevicePicker
from app.draft.draft import CheckedDraft, Draft
from app.form.draft_fields import default_mode_texts, plain_text, settings_without_meaning
from app.form.field_row import MARGIN, UnitEdit
from app.form.field_rows import NO_KINDS
from app.form.recipe_form import RecipeForm
from app.new_run.machine_groups import MachineGroups
from app.new_run.mode_picker import ModePicker
from app.new_run.recipe_and_data import RecipeAndData
from app.new_run.script_rows import SCRIPT_ROWS, ChartsRow, InterpreterRow
from app.new_run.sheet_problems import SheetProblems
from app.new_run.summary_lines import SummaryLines
from app.widgets.build import bold_label, icon_button, lay_column, lay_row, page_title, scrolled
from app.widgets.buttons import Chip
from app.widgets.elided_label import ElidedLabel
from app.widgets.floating_notice import FloatingNotice
from app.widgets.tab_order import chain_tabs
from core.config.mode import Mode
from core.data.dataset import STDLIB
from core.machine.devices import Device
from core.machine.interpreters import Interpreter
from core.recipes.manifest import Recipe
from core.recipes.user_script import RECIPE as USER_SCRIPT

# Pixels of the form below which it leaves out what can be read elsewhere.
LOW: Final = 420
# Beside *What*: headings, the chips above the GPUs; the CPU's line and the mode below them.
ABOVE_GPUS, BELOW_GPUS = 100, 80
MIN_WIDTH: Final = 360


class SheetHeader(QWidget):
    """Title of the sheet, with *Reset* and a cross."""

    reset_requested = Signal()
    close_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.title = page_title("New run")
        self.copied = ElidedLabel()
        self.copied.setAccessibleName("Filled from")
        self.reset = Chip("Reset", "Reset every setting to the recipe's defaults")
        self.reset.clicked.connect(self.reset_requested)
        self.cross = icon_button("close", "Close; your settings are kept", self.close_requested.emit, "Close New run")
        self.cross.setAutoRaise(True)
        parts = (self.title, self.copied, self.reset, self.cross)
        lay_row(self, *parts, spacing=8, margins=(16, 12, 8, 8), grow=self.copied)
        self.show_copied("")

    def show_copied(self, name: str) -> None:
        """Show the name of the run that the settings were copied from."""
        self.copied.set_full_text(f"Copy of {name}" if name else "")


class NewRunSheet(QWidget):
    """Recipe, data, devices, mode and fields. It holds a `Draft`, which others check.

    Args:
        start: The action of the button at its foot; None leaves that out.
        is_filled: False leaves the rows of the recipe's fields, half of the work, to `fill`.

    Attributes:
        drafts: Drafts of recipes that were left for another, by recipe.
        notice: Covers the lower end of the form while it has a message, and moves nothing.

    Signals:
        watched_changed: The sheet came into sight, or went.
    """

    draft_changed = Signal()
    charts_requested = Signal()
    close_requested = Signal()
    watched_changed = Signal(bool)

    def __init__(
        self,
        recipes: Sequence[Recipe],
        start: QAction | None = None,
        parent: QWidget | None = None,
        *,
        is_filled: bool = True,
    ) -> None:
        super().__init__(parent)
        self._interpreters: tuple[Interpreter, ...] = ()
        self._shown_recipe = ""
        self.drafts: dict[str, Draft] = {}
        self.header = SheetHeader()
        self.devices = DevicePicker()
        self.machines, self.balance = MachineGroups(), BalanceCard()
        self.mode = ModePicker()
        self.form = RecipeForm()
        self.what = RecipeAndData(self.form.what)
        self.recipe, self.data, self.run_name = self.what.recipe, self.what.data, self.what.run_name
        self.summary = SummaryLines(start)
        self.what.set_recipes(recipes)
        self._lay_out()
        self.problems = SheetProblems(self.what, self.devices, self.mode, self.form, self._scroll)
        if is_filled:
            self.fill()

    def fill(self, recipe: str = "") -> None:
        """Make the rows, of `recipe` where there is one of that name; the sheet may be shown from then on."""
        self.what.choose(recipe)
        self._show_recipe()
        self._connect()

    def _connect(self) -> None:
        self.recipe.currentIndexChanged.connect(self._on_recipe_changed)
        self.mode.shown_changed.connect(self._show_settings_of_mode)
        self.summary.fix_requested.connect(self.problems.go_to_first)
        self.header.reset_requested.connect(self.reset)
        self.header.close_requested.connect(self.close_requested)
        self.machines.picked.connect(lambda: self.devices.select(()))
        self.devices.selection_changed.connect(self._on_devices_chosen)
        self.balance.balance_requested.connect(lambda: self.set_field("balance", "measured"))
        edits = (
            self.data.edited,
            self.machines.selection_changed,
            self.devices.selection_changed,
            self.mode.changed,
            self.form.edited,
        )
        for edited in edits:
            edited.connect(self._on_edited)
        self.run_name.textEdited.connect(self._on_edited)

    def set_recipes(self, recipes: Sequence[Recipe]) -> None:
        """Take over the recipes after one was added, changed or removed; the chosen one stays, with its values."""
        if list(recipes) == self.what.listed:
            return
        before, kept = self.what.chosen(), self.draft()
        self.what.set_recipes(recipes)
        now = self.what.chosen()
        if now == before:
            return
        if now is None or now.name != kept.recipe:
            self._keep(kept)
        self._show_recipe()
        if now is not None and before is not None and now.name == before.name:
            self.form.set_texts({name: text for name, text in kept.fields.items() if name in self.form.rows})
        self._on_edited()

    def _keep(self, draft: Draft) -> None:
        if draft.recipe:
            self.drafts[draft.recipe] = draft

    def _lay_out(self) -> None:
        where = lay_column(None, self.devices, self.machines, self.balance, spacing=8, margins=(MARGIN, 0, 0, 4))
        parts = {"What": (self.what,), "Where": (where, self.mode, self.form.where), "How": (self.form,)}
        self._scroll, self._headings = _scrolled_groups(parts)
        scroll = self._scroll
        lay_column(self, self.header, scroll, self.summary, grow=scroll)
        self.notice = FloatingNotice(scroll)
        self.setMinimumWidth(MIN_WIDTH)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_devices()

    def _fit_devices(self) -> None:
        """Keep the mode in sight, however many GPUs there are."""
        height = self._scroll.viewport().height()
        self.what.set_low(height < LOW)
        self._headings[0].setVisible(height >= LOW)
        above, below = self.what.sizeHint().height() + ABOVE_GPUS, BELOW_GPUS
        self.devices.set_room(max(1, height - above - below))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit_devices()
        self.watched_changed.emit(True)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.watched_changed.emit(False)

    def _on_edited(self, *_: object) -> None:
        self._show_changed()
        self.draft_changed.emit()

    def _show_changed(self) -> None:
        draft = self.draft()
        is_changed = self.form.is_set or bool(draft.name) or bool(self.header.copied.full_text)
        of_mode = draft.mode != Mode.AUTO or draft.mode_fields != default_mode_texts()
        self.header.reset.setVisible(is_changed or of_mode)

    def chosen_devices(self) -> list[Device]:
        """The ticked devices of another machine, or of this computer."""
        group = self.machines.chosen()
        return self.devices.selected() if group is None else group.selected()

    def _on_devices_chosen(self) -> None:
        """Untick another machine's devices: a run is on one machine."""
        if self.devices.selected():
            self.machines.clear()

    def draft(self) -> Draft:
        return Draft(
            recipe=str(self.recipe.currentData() or ""),
            dataset=self.data.path(),
            devices=tuple(device.uuid for device in self.devices.selected()),
            mode=self.mode.mode(),
            mode_fields=self.mode.texts(),
            fields=self.form.texts(),
            name=self.run_name.text().strip(),
        )

    def open_draft(self, draft: Draft, keep_devices: bool = False) -> None:
        """Show the draft that was in sight when the window was closed, without keeping the present one."""
        self._shown_recipe = ""
        if draft.recipe not in self.what.usable:  # its folder may come back
            self._keep(draft)
        self.set_draft(draft, keep_devices)
        self._shown_recipe = str(self.recipe.currentData() or "")

    def set_draft(self, draft: Draft, keep_devices: bool = False) -> None:
        """Show a draft; `keep_devices` leaves the ticks as they are."""
        if self._shown_recipe not in ("", draft.recipe):
            self._keep(dataclasses.replace(self.draft(), recipe=self._shown_recipe))
        row = self.recipe.findData(draft.recipe)
        if row >= 0 and row != self.recipe.currentIndex():
            with QSignalBlocker(self.recipe):
                self.recipe.setCurrentIndex(row)
            self._show_recipe()
        self.header.show_copied("")
        self.data.set_path(draft.dataset)
        self.run_name.setText(draft.name)
        self.mode.set_mode(draft.mode, draft.mode_fields)
        self.form.reset()
        self.form.set_texts(draft.fields)
        if not keep_devices:
            self.devices.select(draft.devices)
        self._on_edited()

    def copy_run(self, draft: Draft, name: str) -> None:
        """Show the settings of a run, and its name."""
        self.set_draft(draft)
        self.form.clear_defaults()
        self.header.show_copied(name)
        self._show_changed()

    def reset(self) -> None:
        recipe = str(self.recipe.currentData() or "")
        self.set_draft(Draft(recipe=recipe, dataset=STDLIB), keep_devices=True)

    def clear_name(self) -> None:
        self.run_name.clear()
        self._on_edited()

    def show_checked(self, checked: CheckedDraft, steps_per_epoch: int | None = None) -> None:
        """Mark problems, and show the values of empty fields and the number of epochs."""
        self.form.show_placeholders(checked.placeholders)
        steps = checked.config.steps if checked.config is not None else None
        row = self.form.rows.get("steps")
        if row is not None and isinstance(row.editor, UnitEdit):
            row.editor.set_unit(f"{steps / steps_per_epoch:.2g} epochs" if steps and steps_per_epoch else "")
        self.form.show_reasons(checked.reasons)
        self.problems.show(checked.problems)

    def _show_recipe(self) -> None:
        recipe = self.what.chosen()
        self._shown_recipe = recipe.name if recipe is not None else ""
        self.what.show_recipe(recipe)
        if recipe is not None:
            self.form.set_recipe(recipe, SCRIPT_ROWS if recipe.name == USER_SCRIPT else NO_KINDS)
            row = self.form.rows.get("charts")
            if isinstance(row, ChartsRow):
                row.table_requested.connect(self.charts_requested)
            self.show_interpreters(self._interpreters)
            self._show_settings_of_mode()
            chain_tabs(self)

    def show_interpreters(self, found: Sequence[Interpreter]) -> None:
        self._interpreters = tuple(found)
        row = self.form.rows.get("python")
        if isinstance(row, InterpreterRow):
            row.show_interpreters(found)

    def set_field(self, name: str, text: str) -> None:
        """Fill a field as if it had been typed, where the recipe has one of that name."""
        row = self.form.rows.get(name)
        if row is not None:
            row.set_text(text)
            row.edited.emit(name)

    def change_settings(self, changes: Mapping[str, Any]) -> None:
        """Change several settings as if they had been chosen: fields, a recipe's options, mode and devices."""
        for name, value in changes.items():
            if name == "options":
                self.change_settings(value)
            elif name == "devices":
                self.devices.select(value)
            elif name in self.form.rows:
                self.set_field(name, plain_text(value))
        mode = changes.get("mode")
        if mode is not None:
            stage = {"zero_stage": str(changes["zero_stage"])} if "zero_stage" in changes else {}
            self.mode.set_mode(Mode.AUTO if mode == Mode.SINGLE else mode, {**self.mode.texts(), **stage})
        self._on_edited()

    def _show_settings_of_mode(self) -> None:
        mode = self.mode
        without = settings_without_meaning(mode.shown_mode(), mode.texts(), mode.ranks())
        self.form.show_only(self.form.rows.keys() - without)

    def _on_recipe_changed(self, _row: int) -> None:
        """Show the recipe's last draft; for a new one its defaults, with the present data and mode."""
        left = dataclasses.replace(self.draft(), recipe=self._shown_recipe)
        self._keep(left)
        self.notice.clear()
        self._show_recipe()
        recipe = self.what.chosen()
        if recipe is not None:
            fresh = dataclasses.replace(left, recipe=recipe.name, fields={}, name="")
            self.set_draft(self.drafts.get(recipe.name, fresh), keep_devices=True)


def _scrolled_groups(groups: Mapping[str, Sequence[QWidget | QLayout]]) -> tuple[QScrollArea, list[QLabel]]:
    """Groups of parts under their headings, in a column that scrolls."""
    content, headings = QWidget(), [bold_label(title) for title in groups]
    column = lay_column(content, spacing=4, margins=(0, 4, 4, 16))
    for label, parts in zip(headings, groups.values(), strict=True):
        label.setContentsMargins(MARGIN, 12 if column.count() else 0, 0, 4)
        column.addWidget(label)
        for part in parts:
            column.addWidget(part) if isinstance(part, QWidget) else column.addLayout(part)
    column.addStretch(1)
    scroll = scrolled(content)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)  # nothing moves when it comes and goes
    scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return scroll, headings
