"""Asks a recipe's own check while a draft is edited, so that nothing it refuses is found out at Start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, Signal

from app.controllers.background import OperationRunner
from app.controllers.newest_answer import NewestAnswer
from core.config.run_config import FIELD_BY_NAME, RunConfig
from core.data.dataset import DatasetIdentity, estimate_samples
from core.errors import ConfigError, RankdeckError
from core.launch.resolved import ResolvedRun
from core.launch.run_length import run_notes, samples_known
from core.machine.power import battery_notes, read_battery
from core.recipes.check import check_by_recipe, check_text_column
from core.recipes.manifest import Recipe

LIMIT_S: Final = 60.0
_MOST_ROUNDS: Final = 5


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
    """What the recipe says of the newest draft, while the sheet is in sight.

    Signals:
        checked: ``(problems by field, notes)`` of the newest draft.
    """

    checked = Signal(object, object)

    def __init__(self, runner: OperationRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._answers = NewestAnswer(
            runner,
            lambda answer: self.checked.emit(answer.problems, answer.notes),
            lambda error: Answer({"recipe": error}),
            self,
        )
        self._recipe = ""
        self.close = self._answers.close
        self.forget = self._answers.forget
        self.set_watched = self._answers.set_watched

    @property
    def is_asking(self) -> bool:
        """A check is under way, or about to be."""
        return self._answers.is_asking

    def update(self, run: ResolvedRun | None, dataset: DatasetIdentity | None, wrong_dataset: str) -> None:
        """Takes over a draft; what was found before stays in sight until there is an answer.

        Args:
            run: What would be trained; None where too much is wrong to say.
            dataset: Its files, if they can be read.
            wrong_dataset: A dataset that cannot be used, so that the check says nothing about it.
        """
        if run is None:
            self._answers.ask("", None)
            return
        can_ask = bool(run.recipe.check or dataset is not None)
        is_other, self._recipe = run.recipe.name != self._recipe, run.recipe.name
        self._answers.ask(
            f"{run.recipe.folder} {run.config} {run.batch} {dataset} {wrong_dataset}",
            (lambda: find_problems(run, None if wrong_dataset else dataset)) if can_ask else None,
        )
        if self._answers.answer is None and (is_other or not can_ask or not self._answers.is_watched):
            self.checked.emit({}, ())


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
            samples = estimate_samples(dataset, config.seq_len, config.held_out)
            notes = (*run_notes(run, samples if samples_known(run, dataset) else None), *notes)
            notes = (*dataset.notes, *check_text_column(dataset, config, LIMIT_S), *notes)
    except ConfigError as error:
        problems.setdefault(error.field, error)
    except RankdeckError as error:
        problems.setdefault("dataset_file", error)
    return Answer(problems, () if problems else (*notes, *battery_notes(read_battery())))


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
