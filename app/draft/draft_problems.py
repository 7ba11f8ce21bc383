"""Problems of a draft that disks and programs find: its data, its script, its recipe's own check. All block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.draft.draft import RUNS_DIR, Draft
from core.config.fields import FieldValue
from core.config.run_config import FIELD_BY_NAME, RunConfig
from core.data.dataset import (
    DatasetIdentity,
    check_packages_for,
    estimate_samples,
    is_hub,
    is_whole_drive,
    list_dataset,
    look_at_beginnings,
)
from core.data.hub import HubName, cached_info, cached_text_bytes
from core.errors import ConfigError, DatasetError, RankdeckError
from core.launch.preflight import check_folder
from core.launch.resolved import ResolvedRun
from core.launch.run_length import run_notes, samples_known
from core.machine.packages import MissingPackageError, missing_packages
from core.recipes.check import check_by_recipe, check_text_column
from core.recipes.manifest import Recipe
from core.recipes.user_script import read_script, with_absolute_places

LIMIT_S: Final = 60.0
_MOST_ROUNDS: Final = 5
Problems = Mapping[str, RankdeckError]


@dataclass(frozen=True, slots=True)
class DatasetSize:
    """Size of a dataset, found without reading the files.

    Attributes:
        files: Number of files; 0 for the Hub's.
        size_bytes: Of the files; of the Hub's the text of the downloaded copy, None where that is not known.
        identity: The same for checks, without a hash; None for the Hub's.
        is_here: Nothing has to be downloaded.
    """

    path: str
    files: int
    size_bytes: int | None
    identity: DatasetIdentity | None = None
    is_here: bool = True


def dataset_size(path: str, rule: str, is_stopped: Callable[[], bool]) -> DatasetSize:
    """Measure a dataset; `rule` chooses the files of a folder, and `is_stopped` ends a long walk."""
    if is_whole_drive(path):
        raise DatasetError(
            f"{path} is a whole drive.",
            "Choose a folder in it, or a file.",
            title="The dataset is a whole drive",
        )
    listing = list_dataset(path, rule, is_stopped)
    check_packages_for(path, listing.files)
    if is_hub(path):
        name = HubName.parse(path)
        return DatasetSize(path, 0, cached_text_bytes(name), is_here=cached_info(name) is not None)
    found = look_at_beginnings(path, listing)
    return DatasetSize(path, found.files, found.size_bytes, found)


def folder_problems(runs_dir: Path, needed_bytes: int) -> Problems:
    """Check the folder of runs: room, permission, drive."""
    try:
        check_folder(runs_dir, needed_bytes)
    except RankdeckError as error:
        return {RUNS_DIR: error}
    return {}


def package_problems(recipe: Recipe) -> Problems:
    """Check for packages that a recipe needs and Rankdeck's Python lacks."""
    missing = missing_packages(recipe.requires)
    return {"recipe": MissingPackageError(missing, f"The recipe {recipe.title}")} if missing else {}


def script_options(draft: Draft, recipe: Recipe) -> dict[str, FieldValue]:
    """Parse a script's options; the form itself marks those that cannot be read."""
    options: dict[str, FieldValue] = {}
    for spec in recipe.fields:
        try:
            options[spec.name] = spec.parse(draft.fields.get(spec.name, ""))
        except ConfigError:
            options[spec.name] = spec.default
    return options


def script_problems(options: Mapping[str, FieldValue]) -> Problems:
    if not options.get("script") and not options.get("module"):
        next_step = "Choose a Python file with the button next to the field."
        return {"script": ConfigError("script", "No script is selected.", next_step)}
    try:
        read_script(with_absolute_places(options, [Path.cwd()]))
    except ConfigError as error:
        return {error.field: error}
    return {}


@dataclass(frozen=True, slots=True)
class RecipeAnswer:
    """Problems of a recipe's check, by field, and its notes as sentences that stop nothing."""

    problems: Problems
    notes: tuple[str, ...] = ()


def recipe_answer(run: ResolvedRun, dataset: DatasetIdentity | None) -> RecipeAnswer:
    """Collect all problems that the recipe finds, one after the other with each wrong setting at its default.

    `dataset` is None where its files, with the column of text, cannot be read.
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
            text, row_notes = check_text_column(dataset, config, LIMIT_S)
            notes = (*dataset.notes, *([text] if text else []), *row_notes, *notes)
    except ConfigError as error:
        problems.setdefault(error.field, error)
    except RankdeckError as error:
        problems.setdefault("dataset_file", error)
    return RecipeAnswer(problems, () if problems else notes)


def _put_right(config: RunConfig, recipe: Recipe, field: str) -> RunConfig | None:
    """Set a field to its default; None where it has that already."""
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
