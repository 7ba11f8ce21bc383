"""Looks at the disk for a script of one's own: what is wrong with its fields, which Pythons may run it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.background import Operation, OperationRunner
from app.state.draft import Draft
from core.config.fields import FieldValue
from core.errors import ConfigError, RankdeckError
from core.machine.interpreters import Interpreter, find_interpreters
from core.recipes.manifest import Recipe
from core.recipes.user_script import RECIPE, read_script, with_absolute_places

LOOK_AFTER_MS: Final = 200


class Scripting(QObject):
    """Follows the fields of the recipe `script`; does nothing for any other.

    Signals:
        judged: ``{field: RankdeckError}``; empty while nothing is wrong.
        interpreters_found: A list of `Interpreter`, the likeliest first.
    """

    judged = Signal(object)
    interpreters_found = Signal(object)

    def __init__(self, runner: OperationRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self._options: dict[str, FieldValue] | None = None
        self._looked_beside: str | None = None
        self._later = QTimer(self, singleShot=True, interval=LOOK_AFTER_MS)
        self._later.timeout.connect(self._look)

    def close(self) -> None:
        """Looks at nothing any more."""
        self._later.stop()

    def update(self, draft: Draft, recipe: Recipe | None) -> None:
        """Takes over an edited draft."""
        if recipe is None or recipe.name != RECIPE:
            self._options = None
            self._later.stop()
            self.judged.emit({})
            return
        options = _options(draft, recipe)
        if options != self._options:
            self._options = options
            self._later.start()

    def _look(self) -> None:
        options = self._options
        if options is None:
            return

        def judge() -> dict[str, RankdeckError]:
            return problems_of(options)

        self._runner.run(Operation(judge, self._on_judged, self._on_failed, topic="script"))
        script = str(options.get("script") or "")
        beside = str(Path(script).parent) if script else ""
        if beside != self._looked_beside:
            self._looked_beside = beside

            def find() -> list[Interpreter]:
                return find_interpreters(Path(script).expanduser() if script else None)

            self._runner.run(Operation(find, self.interpreters_found.emit, self._on_failed, topic="interpreters"))

    def _on_judged(self, problems: dict[str, RankdeckError]) -> None:
        if self._options is not None:
            self.judged.emit(problems)

    def _on_failed(self, error: RankdeckError) -> None:
        self.judged.emit({"script": error})


def problems_of(options: dict[str, FieldValue]) -> dict[str, RankdeckError]:
    """What is wrong with a script's fields, by field. Looks at disks.

    Args:
        options: The recipe's.
    """
    if not options.get("script") and not options.get("module"):
        next_step = "Choose a Python file with the button next to the field."
        return {"script": ConfigError("script", "No script is selected.", next_step)}
    try:
        read_script(with_absolute_places(options, [Path.cwd()]))
    except ConfigError as error:
        return {error.field: error}
    return {}


def _options(draft: Draft, recipe: Recipe) -> dict[str, FieldValue]:
    """The recipe's options as far as their texts can be read; the others are marked by the form itself."""
    options: dict[str, FieldValue] = {}
    for spec in recipe.fields:
        try:
            options[spec.name] = spec.parse(draft.fields.get(spec.name, ""))
        except ConfigError:
            options[spec.name] = spec.default
    return options
