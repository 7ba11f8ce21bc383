"""Asks a recipe's own check while a draft is edited, so that nothing it refuses is found out at Start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.background import Operation, OperationRunner
from core.config.run_config import FIELD_BY_NAME, RunConfig
from core.data.dataset import DatasetIdentity
from core.errors import ConfigError, RankdeckError
from core.launch.resolved import ResolvedRun
from core.recipes.check import check_by_recipe, check_text_column
from core.recipes.manifest import Recipe

ASK_AFTER_MS: Final = 300
"""After the last key: a check is a process of a few tenths of a second."""
LIMIT_S: Final = 60.0
_MOST_ROUNDS: Final = 5
_KEPT: Final = 32


@dataclass(frozen=True, slots=True)
class Answer:
    """What the checks say.

    Attributes:
        problems: By field.
        notes: Sentences that stop nothing.
    """

    problems: Mapping[str, RankdeckError]
    notes: tuple[str, ...] = ()


class RecipeCheck(QObject):
    """One check at a time, for the newest draft; answers are kept, so that going back to a value costs nothing.

    Signals:
        checked: ``(problems by field, notes)`` of the newest draft.
    """

    checked = Signal(object, object)

    def __init__(self, runner: OperationRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._runner = runner
        self._answers: dict[str, Answer] = {}
        self._run: ResolvedRun | None = None
        self._dataset: DatasetIdentity | None = None
        self._key = self._asked = self._of = ""
        self._is_data_wrong = False
        self._is_watched = False
        self._later = QTimer(self, singleShot=True, interval=ASK_AFTER_MS)
        self._later.timeout.connect(self._ask)

    def close(self) -> None:
        """Asks nothing any more."""
        self._later.stop()
        self._is_watched = False

    def set_watched(self, watched: bool) -> None:
        """Whether the draft is in sight: if not, no process is started for it."""
        self._is_watched = watched
        if watched:
            self._show()

    def forget(self) -> None:
        """Asks again whatever was answered: packages were installed."""
        self._answers.clear()

    def update(self, run: ResolvedRun | None, dataset: DatasetIdentity | None, wrong_dataset: str) -> None:
        """Takes over a draft.

        Args:
            run: What would be trained; None where too much is wrong to say.
            dataset: Its files, if they can be read.
            wrong_dataset: A dataset that cannot be used, so that the check says nothing about it.
        """
        self._run, self._dataset = run, dataset
        self._key = "" if run is None else f"{run.recipe.folder} {run.config} {run.batch} {dataset} {wrong_dataset}"
        self._is_data_wrong = bool(wrong_dataset)
        self._show()

    def _show(self) -> None:
        """Says what is known of the newest draft; what was found before stays in sight until there is an answer."""
        answer, run = self._answers.get(self._key), self._run
        if answer is not None:
            self.checked.emit(answer.problems, answer.notes)
            return
        name = run.recipe.name if run is not None else self._of
        can_ask = self._is_watched and run is not None and bool(run.recipe.check or self._dataset is not None)
        if run is not None and (name != self._of or not can_ask):
            self.checked.emit({}, ())
        self._of = name
        if can_ask:
            self._later.start()

    def _ask(self) -> None:
        """Begins, unless a check is under way: the newest draft is asked about after that."""
        run, dataset, key = self._run, self._dataset, self._key
        if run is None or self._asked or key in self._answers or not self._is_watched:
            return
        self._asked, data_wrong = key, self._is_data_wrong

        def work() -> Answer:
            return find_problems(run, None if data_wrong else dataset)

        def answered(answer: Answer) -> None:
            self._asked = ""
            while len(self._answers) >= _KEPT:
                del self._answers[next(iter(self._answers))]
            self._answers[key] = answer
            self._show()

        self._runner.run(Operation(work, answered, lambda error: answered(Answer({"recipe": error}))))


def find_problems(run: ResolvedRun, dataset: DatasetIdentity | None) -> Answer:
    """All that the recipe refuses, one after the other with each wrong setting at its default. Blocks.

    Args:
        run: What would be trained.
        dataset: Its files, for the column of text; None where they cannot be read.
    """
    config, recipe = run.config, run.recipe
    notes: tuple[str, ...] = ()
    problems: dict[str, RankdeckError] = {}
    for _ in range(_MOST_ROUNDS):
        try:
            _, notes = check_by_recipe(config, recipe, LIMIT_S, global_batch=run.batch.global_)
            break
        except ConfigError as error:
            problems.setdefault(error.field or "recipe", error)
            right = _put_right(config, recipe, error.field)
            if right is None:
                break
            config = right
        except RankdeckError as error:
            problems.setdefault("recipe", error)
            break
    try:
        if dataset is not None:
            notes = (*check_text_column(dataset, config.options, config.env, LIMIT_S), *notes)
    except ConfigError as error:
        problems.setdefault(error.field, error)
    except RankdeckError as error:
        problems.setdefault("dataset_file", error)
    return Answer(problems, () if problems else tuple(notes))


def _put_right(config: RunConfig, recipe: Recipe, field: str) -> RunConfig | None:
    """The config with a setting at its default; None where it has that already."""
    own = {spec.name: spec.default for spec in recipe.fields}
    if field in own:
        options = {**config.options, field: own[field]}
        changed = config.replace(options={name: it for name, it in options.items() if it is not None})
    elif field in FIELD_BY_NAME:
        default = recipe.defaults.get(field, FIELD_BY_NAME[field].default)
        changed = config.replace(**{field: default})
    else:
        return None
    return None if changed == config else changed
