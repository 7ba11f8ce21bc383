"""The right panel: what the next run will be, and the arithmetic that always stands under it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.models.draft import CheckedDraft, Draft, default_texts, form_fields
from app.views.data_field import STDLIB, DataField
from app.views.device_picker import DevicePicker
from app.views.icons import icon
from app.views.mode_picker import ModePicker
from app.views.notice_bar import NoticeBar
from app.views.numbers import count, tabular
from app.views.recipe_form import RecipeForm
from app.views.tones import rule
from core.errors import RankdeckError
from core.recipes import Recipe

MIN_WIDTH: Final = 320
COPIED_MS: Final = 1500


class SetupPanel(QWidget):
    """Recipe, data, devices, mode and fields. It holds a `Draft`; whether that is right is decided elsewhere."""

    draft_changed = Signal()

    def __init__(self, recipes: Sequence[Recipe], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._recipes = {recipe.name: recipe for recipe in recipes if not recipe.problem}
        self.notice = NoticeBar()
        self.recipe = QComboBox()
        self.data = DataField()
        self.devices = DevicePicker()
        self.mode = ModePicker()
        self.form = RecipeForm()
        self._description = QLabel()
        self._description.setWordWrap(True)
        self._description.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.summary = SummaryLines()
        self._fill_recipes(recipes)
        self._lay_out()
        self._show_recipe()
        self.recipe.currentIndexChanged.connect(self._on_recipe_changed)
        for edited in (self.data.edited, self.devices.selection_changed, self.mode.changed, self.form.edited):
            edited.connect(self.draft_changed)

    def _fill_recipes(self, recipes: Sequence[Recipe]) -> None:
        self.recipe.setAccessibleName("Recipe")
        self.recipe.setObjectName("field_recipe")
        for recipe in recipes:
            self.recipe.addItem(recipe.title + (" (cannot be used)" if recipe.problem else ""), recipe.name)
            row = self.recipe.count() - 1
            words = recipe.problem or recipe.description
            self.recipe.setItemData(row, words, Qt.ItemDataRole.ToolTipRole)
            if recipe.problem:
                self.recipe.setItemData(row, 0, Qt.ItemDataRole.UserRole - 1)  # Qt's own way to disable an item

    def _lay_out(self) -> None:
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        _section(column, "Reci&pe", self.recipe, self.recipe)
        column.addWidget(self._description)
        _section(column, "D&ata", self.data, self.data.line)
        _section(column, "Devices", self.devices, None)
        _section(column, "Mode", self.mode, None)
        _section(column, "Settings", self.form, None)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidget(content)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self.notice)
        outer.addWidget(scroll, 1)
        outer.addWidget(self.summary)
        self.setMinimumWidth(MIN_WIDTH)
        for combo in (self.recipe, self.mode.stage, self.mode.merge):
            combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            combo.setMinimumContentsLength(4)

    # --- the draft ---------------------------------------------------------------------------------------

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
            zero_stage=self.mode.zero_stage(),
            merge_policy=self.mode.merge_policy(),
            merge_every=self.mode.merge_every.text().strip(),
            fields=self.form.texts(),
        )

    def set_draft(self, draft: Draft, keep_devices: bool = False) -> None:
        """Fills the panel; `keep_devices` leaves the ticks as they are."""
        row = self.recipe.findData(draft.recipe)
        if row >= 0 and row != self.recipe.currentIndex():
            blocked = self.recipe.blockSignals(True)
            self.recipe.setCurrentIndex(row)
            self.recipe.blockSignals(blocked)
            self._show_recipe()
        self.data.set_path(draft.dataset)
        self.mode.set_mode(draft.mode, draft.zero_stage, draft.merge_policy, draft.merge_every)
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
        self.form.show_problems(problems)
        self.devices.show_problem(problems.get("devices"))
        self.mode.show_problem(problems.get("mode"), problems.get("merge_every_chunks"))

    def plan_words(self, checked: CheckedDraft) -> str:
        """What pressing Start will do, in a sentence or two."""
        config, recipe = checked.config, self.chosen_recipe()
        if config is None or recipe is None:
            return "First correct what is marked in Setup."
        text = "your Python library's own text" if config.dataset_file == STDLIB else config.dataset_file
        devices = self.devices.selected()
        names = f"{len(devices)} devices" if len(devices) > 1 else devices[0].name if devices else "no device"
        if all(device.kind == "cpu" for device in devices):
            names = f"{len(devices)} CPU slot{'s' if len(devices) > 1 else ''}"
        how = {"ddp": " together (DDP)", "independent": " independently", "zero": " with ZeRO"}.get(
            checked.mode or "", ""
        )
        first = f"Start trains {recipe.title} on {text}, on {names}{how}."
        return first + (" Nothing is downloaded." if config.dataset_file == STDLIB else "")

    def _show_recipe(self) -> None:
        recipe = self.chosen_recipe()
        if recipe is not None:
            self._description.setText(recipe.description)
            self.form.set_fields(form_fields(recipe))
            self.form.set_texts(default_texts(recipe))

    def _on_recipe_changed(self, _row: int) -> None:
        kept = self.draft()
        self._show_recipe()
        recipe = self.chosen_recipe()
        if recipe is not None:
            defaults = default_texts(recipe)
            self.set_draft(dataclasses.replace(kept, recipe=recipe.name, fields=defaults), keep_devices=True)


def _section(column: QVBoxLayout, title: str, body: QWidget, buddy: QWidget | None) -> None:
    label = QLabel(title)
    font = label.font()
    font.setBold(True)
    label.setFont(font)
    if buddy is not None:
        label.setBuddy(buddy)
    if column.count():
        column.addSpacing(8)
    column.addWidget(label)
    column.addWidget(body)


class SummaryLines(QFrame):
    """Always current: global = micro × ranks × accumulation, steps an epoch, the command line that does the same."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._arithmetic = QLabel()
        self._arithmetic.setWordWrap(True)
        self._arithmetic.setFont(tabular(self._arithmetic.font()))
        self._epoch = QLabel()
        self._epoch.setWordWrap(True)
        self._epoch.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.command = QLineEdit()
        self.command.setReadOnly(True)
        self.command.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.command.setAccessibleName("Command line that does the same")
        self.copy = QToolButton()
        self.copy.setIcon(icon("copy"))
        self.copy.setAccessibleName("Copy the command line")
        self.copy.setToolTip("Copy the command line that does the same")
        self.copy.clicked.connect(self._on_copy_clicked)
        self._back = QTimer(self)
        self._back.setSingleShot(True)
        self._back.setInterval(COPIED_MS)
        self._back.timeout.connect(lambda: self.copy.setIcon(icon("copy")))
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.command, 1)
        row.addWidget(self.copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        column.addWidget(Line())
        column.addWidget(self._arithmetic)
        column.addWidget(self._epoch)
        column.addLayout(row)

    @property
    def arithmetic(self) -> str:
        """The line with the batch arithmetic."""
        return self._arithmetic.text()

    @property
    def epoch(self) -> str:
        """The line with the steps of an epoch."""
        return self._epoch.text()

    def show_checked(self, checked: CheckedDraft, steps_per_epoch: int | None) -> None:
        """Shows a draft's arithmetic; while something is wrong, how many things are."""
        if checked.batch is None or checked.config is None:
            wrong = len(checked.problems)
            self._arithmetic.setText(f"✕ {wrong} {'setting needs' if wrong == 1 else 'settings need'} a look")
            self._epoch.setText("")
        else:
            batch = checked.batch
            apart = " on each device" if checked.mode == "independent" else ""
            factors = f"{count(batch.micro)} × {batch.ranks} × {count(batch.accumulation)}"
            self._arithmetic.setText(f"Global batch {count(batch.global_)} = {factors}{apart}")
            self._epoch.setText(f"≈ {count(steps_per_epoch)} steps an epoch" if steps_per_epoch else "")
        self._arithmetic.setToolTip("Samples in one optimizer step = micro-batch × ranks × accumulation")
        if self.command.text() != checked.command:
            self.command.setText(checked.command)
            self.command.setCursorPosition(0)
        self.command.setToolTip(checked.command)
        self.copy.setEnabled(bool(checked.command))
        self.copy.setToolTip(
            "Copy the command line that does the same"
            if checked.command
            else "There is no command yet: first correct what is marked above"
        )

    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())
        self.copy.setIcon(icon("state-finished", "success"))
        self._back.start()


class Line(QFrame):
    """A thin rule between parts."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedHeight(1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """One pixel in the rule's colour."""
        QPainter(self).fillRect(self.rect(), rule(self.palette()))
