"""Parameter counts: how large the model is that a recipe would train with given settings, found without its weights.

A recipe says it by a function `build_model(request)` in its train.py. `workers.programs.parameter_count_main` calls it
on PyTorch's meta device, where a model has shapes and no memory, in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.config import RunConfig
from core.config.config_file import to_json
from core.parsing import parse_json
from core.processes.ask import ask_program
from core.recipes.manifest import Recipe

LIMIT_S: Final = 120.0
"""Importing PyTorch and transformers takes seconds, on a busy machine many."""


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """The size of a model.

    Attributes:
        total: All parameters; one that two layers share counts once.
        trained: Those that training changes: with LoRA only a few.
    """

    total: int
    trained: int


class NotWantedError(Exception):
    """The answer is not waited for any more."""


def count_parameters(
    config: RunConfig, recipe: Recipe, is_wanted: Callable[[], bool] = lambda: True, limit_s: float = LIMIT_S
) -> ParameterCount | None:
    """Counts the parameters of the model that would be trained. Blocks; may be called from any thread.

    Args:
        config: Complete with the recipe's defaults.
        recipe: Its recipe.
        is_wanted: Asked now and then; the program is ended once it says no.
        limit_s: After that the program is ended.

    Returns:
        None where the recipe does not say it, or cannot build the model with these settings.
    """
    if recipe.program:
        return None

    def waiting(_folder: Path) -> None:
        if not is_wanted():
            raise NotWantedError

    program = ("-m", "workers.programs.parameter_count_main", str(recipe.folder))
    asked = {"config": parse_json(to_json(config))}
    try:
        values = ask_program(program, asked, config.env, limit_s, waiting).values or {}
    except NotWantedError:
        return None
    total, trained = values.get("total"), values.get("trained")
    return ParameterCount(total, trained) if isinstance(total, int) and isinstance(trained, int) else None


def depends_on(config: RunConfig) -> tuple[object, ...]:
    """The settings that a model can be built from; two configs alike in them have one parameter count."""
    return config.recipe, config.model, config.seq_len, config.dataset_file, sorted(config.options.items()), config.env
