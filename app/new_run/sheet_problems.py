"""Problems of the New run sheet: each marked in its place, and the way there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QScrollArea, QWidget

from app.devices.device_picker import DevicePicker
from app.draft.draft import RUNS_DIR
from app.form.draft_fields import MODE_FIELDS
from app.form.field_rows import no_remedies
from app.form.recipe_form import RecipeForm
from app.form.remedies import RemediesFor
from app.new_run.mode_picker import ModePicker
from app.new_run.recipe_and_data import RecipeAndData
from core.errors import ConfigError, RankdeckError

# Fields that are marked and are no rows of the form, in the order of the sheet.
_FIRST: Final = ("recipe", "dataset_file", "name", RUNS_DIR, "devices", "mode")
_PLACES: Final = (*_FIRST, *MODE_FIELDS)


class SheetProblems:
    """Marks problems in the parts of the sheet, with `remedies` beside them."""

    def __init__(
        self, what: RecipeAndData, devices: DevicePicker, mode: ModePicker, form: RecipeForm, scroll: QScrollArea
    ) -> None:
        self._what, self._devices, self._mode, self._form, self._scroll = what, devices, mode, form, scroll
        self._shown: Mapping[str, RankdeckError] = {}
        self.remedies: RemediesFor = no_remedies

    def show(self, problems: Mapping[str, RankdeckError]) -> None:
        self._shown = problems
        self._form.show_problems(problems, self.remedies)
        self._what.show_problems(problems, self.remedies)
        self._devices.show_problem(problems.get("devices"))
        self._mode.show_problems(problems)

    def refuse(self, error: ConfigError) -> None:
        """Mark the field that a start was refused for, and go there."""
        self.show({**self._shown, error.field: error})
        if self.marks(error.field):
            self.go_to(error.field)

    def marks(self, field: str) -> bool:
        """Whether the sheet shows problems of a field beside it."""
        return field in self._form.rows or field in _PLACES

    def go_to_first(self) -> None:
        wrong = [name for name in (*_FIRST, *self._form.rows) if name in self._shown] or list(self._shown)
        if wrong:
            self.go_to(wrong[0])

    def go_to(self, field: str) -> None:
        """Bring a setting into sight, with the cursor in it."""
        what, mode = self._what, self._mode
        if field in self._form.rows:
            row = self._form.rows[field]
            self._form.advanced.reveal((field,))
            editor: QWidget = row.editor
            shown: QWidget = row.editor if row.problem.isHidden() else row.problem
        else:
            places: dict[str, QWidget] = {"recipe": what.recipe, "dataset_file": what.data, "devices": self._devices}
            shown = what.run_name if field in ("name", RUNS_DIR) else places.get(field, mode)
            editor = what.data.line if shown is what.data else shown
            editor = mode.radios[mode.shown_mode()] if shown is mode else editor
        editor.setFocus(Qt.FocusReason.OtherFocusReason)
        # Unfolded and with its reason it has another place, from the next turn of the event loop on.
        QTimer.singleShot(0, shown, lambda: self._scroll.ensureWidgetVisible(shown))
