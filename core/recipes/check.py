"""Recipe checks: a program of the recipe's looks for faults in its settings and data before a rank starts.

A recipe that says `check = true` has a function `check(request)` in check.py, called by `workers.programs.check_main`.
One that says `check = "check.py"` has a program which is run as ``python check.py SETTINGS.json``; the file holds
`config`, everything that was asked, `resumes`, whether the run exists already, `global_batch`, the samples in an
optimizer step, and `at_default`, names of settings that have the recipe's default. The last line of the output is JSON:
`{"notes": ["…"]}` where nothing stops the run, with other values for settings in `at_default` as `settings`; else
`{"field": "…", "cause": "…", "next_step": "…"}`, with `title` if it likes, or `missing`, packages to install.
How the dataset is read is asked of `workers.programs.column_main` in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.config import RunConfig
from core.config.config_file import to_json
from core.data.dataset import DatasetIdentity, list_dataset
from core.data.formats import BETWEEN_DOCUMENTS, TEXT_COLUMN, is_worth_a_look
from core.errors import ConfigError, RankdeckError
from core.machine.packages import MissingPackageError
from core.parsing import parse_json
from core.processes.ask import Answer, ask_program
from core.recipes.manifest import Recipe, recipe_defaults

LIMIT_S: Final = 60.0
_LOOKED_AT_FILES: Final = 200


def check_by_recipe(
    config: RunConfig,
    recipe: Recipe,
    limit_s: float = LIMIT_S,
    *,
    global_batch: int | None = None,
    resumes: bool = False,
    named: frozenset[str] = frozenset(),
) -> tuple[RunConfig, tuple[str, ...]]:
    """Ask the recipe whether it can train with these settings. Blocks; may be called from any thread.

    Args:
        config: Complete with the recipe's defaults.
        recipe: Its recipe; one without a `check` is not asked.
        limit_s: After that the program is ended, and its ranks will find out.
        global_batch: Samples in an optimizer step, where they are known.
        resumes: The run exists: its data is prepared, and no setting is fitted.
        named: Settings that a flag or a file names: they are never fitted.

    Returns:
        The config, with settings left at the recipe's defaults fitted to the others; and notes for the user.

    Raises:
        ConfigError: A setting that the recipe cannot use.
        MissingPackageError: It lacks a package.
    """
    if not recipe.check:
        return config, ()
    defaults = recipe_defaults(recipe, (), {**config.as_dict(), **config.options})
    own = [] if resumes else sorted({*recipe.defaults, "seq_len"} & defaults.keys() - named)
    at_default = [name for name in own if getattr(config, name) == defaults[name]]
    function = ("-m", "workers.programs.check_main", str(recipe.folder))
    program = function if recipe.checks_in_function else (str(recipe.folder / recipe.check),)
    asked = {"config": parse_json(to_json(config)), "resumes": resumes, "global_batch": global_batch}
    answer = ask_program(program, {**asked, "at_default": at_default}, config.env, limit_s)
    notes = _notes(answer, recipe.title, f"{recipe.title} could not be checked beforehand: {recipe.check} failed")
    settings = (answer.values or {}).get("settings")
    fitted = settings.items() if isinstance(settings, dict) else ()
    return config.replace(**{name: it for name, it in fitted if name in at_default}), notes


def check_text_column(
    dataset: DatasetIdentity, config: RunConfig, limit_s: float = LIMIT_S
) -> tuple[str, tuple[str, ...]]:
    """Look at how a dataset is read, and at its text column. Blocks; may be called from any thread.

    Args:
        dataset: The run's; nothing is looked at unless its recipe reads text.
        config: The run's.
        limit_s: After that the program is ended, and the ranks will find out.

    Returns:
        A sentence on plain text, empty for anything else; and notes on how rows are read.

    Raises:
        ConfigError: The column is in no row, none looks like text, or the rows are of another shape than recipes train.
    """
    if TEXT_COLUMN not in config.options or dataset.kind in ("stdlib", "none"):
        return "", ()
    if not _is_worth_a_look(dataset, config.data_files):
        return _plain_text(dataset, config), ()
    asked = {"config": {"dataset_file": dataset.path, "data_files": config.data_files, "options": dict(config.options)}}
    answer = ask_program(("-m", "workers.programs.column_main"), asked, config.env, limit_s)
    unchecked = "The dataset's columns could not be looked at beforehand"
    notes = _notes(answer, "Reading the dataset", unchecked, TEXT_COLUMN)
    return "", tuple(note for note in notes if note not in dataset.notes)


def _is_worth_a_look(dataset: DatasetIdentity, rule: str) -> bool:
    if dataset.has_rows or dataset.kind == "hub":
        return True
    try:
        files = list_dataset(dataset.path, rule).files
        return any(is_worth_a_look(path, file_format) for path, file_format in files[:_LOOKED_AT_FILES])
    except (OSError, RankdeckError):  # the program that reads it says so
        return True


def _plain_text(dataset: DatasetIdentity, config: RunConfig) -> str:
    """The same sentence as `workers.programs.column_main` gives for files that had to be opened."""
    documents = f"{dataset.files:,} document{'' if dataset.files == 1 else 's'}"
    in_bytes = config.options.get("tokenizer") == "byte"
    tokens = f", {dataset.size_bytes + len(BETWEEN_DOCUMENTS) * dataset.files:,} tokens" if in_bytes else ""
    return f"Data: plain text, {documents}{tokens}."


def _notes(answer: Answer, who: str, unchecked: str, field: str = "") -> tuple[str, ...]:
    """An answer's notes; raises its error."""
    if answer.values is None:
        return (f"{unchecked} ({answer.last_line or 'it printed nothing'}).",)
    error = error_in({"field": field, **answer.values}, who=who)
    if error is not None:
        raise error
    return tuple(str(note) for note in answer.values.get("notes", ()))


def error_in(
    values: Mapping[str, Any], kind: type[RankdeckError] = ConfigError, who: str = "It"
) -> RankdeckError | None:
    """The error in a program's answer, if any.

    Args:
        values: The answer.
        kind: The error's class here, unless packages are missing.
        who: The part that needs them, if the answer does not say it.
    """
    cause, next_step = str(values.get("cause") or ""), str(values.get("next_step") or "")
    missing = [str(name) for name in values.get("missing") or ()]
    if missing:
        return (
            MissingPackageError.of(missing, cause, next_step)
            if next_step
            else MissingPackageError(missing, cause or who)
        )
    if not cause:
        return None
    title = str(values.get("title") or kind.title)
    if kind is ConfigError:
        error: RankdeckError = ConfigError(
            str(values.get("field") or ""), cause, next_step, title=title, allows=str(values.get("allows") or "")
        )
    else:
        error = kind(cause, next_step, title=title)
    error.window_step = str(values.get("window_step") or next_step)
    return error
