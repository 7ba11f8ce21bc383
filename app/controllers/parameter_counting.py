"""Counts the parameters of the model that a draft would train, in a process of its own."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.controllers.background import OperationRunner
from app.controllers.newest_answer import NewestAnswer
from core.launch.resolved import ResolvedRun
from core.recipes.parameter_count import ParameterCount, count_parameters, depends_on


class ParameterCounting(QObject):
    """The size of the newest draft's model, while the sheet is in sight.

    Signals:
        counted: The `ParameterCount`; None while it is not known, and where it cannot be.
    """

    counted = Signal(object)

    def __init__(self, runner: OperationRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._is_open = True
        self._answers: NewestAnswer[ParameterCount | None] = NewestAnswer(
            runner, self.counted.emit, lambda _error: None, self
        )
        self.set_watched = self._answers.set_watched
        self.forget = self._answers.forget

    def close(self) -> None:
        """Counts nothing any more, and ends what counts."""
        self._is_open = False
        self._answers.close()

    def update(self, run: ResolvedRun | None) -> None:
        """Takes over a draft; None where a setting is wrong."""
        if run is None or run.recipe.program:
            self._answers.ask("", None)
        else:
            config, recipe = run.config, run.recipe
            self._answers.ask(
                f"{recipe.folder} {depends_on(config)}",
                lambda: count_parameters(config, recipe, lambda: self._is_open),
            )
        if self._answers.answer is None:
            self.counted.emit(None)
