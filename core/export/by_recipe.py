"""Exports that only a recipe can make (a Hugging Face folder): its `export`, run in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.export import AUTO_DTYPE, KINDS
from core.export.lines import ExportCancelledError
from core.files.destination import refused
from core.processes.ask import ask_program
from core.recipes.check import error_in
from core.recipes.manifest import Recipe
from core.run_folder.store import RunStore

LIMIT_S: Final = 3600.0


class RecipeExportError(RankdeckError):
    """The recipe's own code could not do it."""

    title = "The recipe could not export the run"


def check_recipe(recipe: Recipe | None, problem: str, kind: str, run: str) -> Recipe:
    """The recipe, if it can export `run` to `kind`; without one `problem` says why.

    Raises:
        UsageError: It cannot, or it is not here.
    """
    if recipe is None:
        raise refused(problem, "Restore the run's recipe. To list recipes: rankdeck recipes")
    if kind not in recipe.exports:
        raise refused(
            f"{recipe.title} cannot export its weights as a {KINDS[kind]}.",
            "Export the weights as safetensors.",
            f"rankdeck export {run} --to safetensors",
        )
    return recipe


def run_export(
    store: RunStore,
    recipe: Recipe,
    weights: Path,
    target: Path,
    dtype: str = AUTO_DTYPE,
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Has the recipe fill the empty folder `target` from a file of whole weights. Blocks; works on any thread.

    Raises:
        RecipeExportError: It failed, took too long, or left nothing in the folder.
        ExportCancelledError: `cancelled` said so.
    """

    def waiting(_folder: Path) -> None:
        if cancelled():
            raise ExportCancelledError("The export was cancelled.", "Nothing was written.")

    asked = {"run_dir": str(store.dir), "recipe": str(recipe.folder), "weights": str(weights), "target": str(target)}
    asked["dtype"] = dtype
    program = ("-m", "workers.programs.export_main")
    answer = ask_program(program, asked, store.config().env, LIMIT_S, waiting)
    if not answer.in_time:
        raise RecipeExportError(f"It did not finish within {LIMIT_S:g} s.", "Look into its export(given).")
    if answer.values is None:
        raise RecipeExportError(f"Its process {answer.failure}.", f"Look into {recipe.folder / recipe.entry}.")
    error = error_in(answer.values, RecipeExportError)
    if error is not None:
        raise error
    if not any(target.iterdir()):
        raise RecipeExportError(f"{recipe.title} wrote nothing to the export folder.", "Correct its export(given).")
