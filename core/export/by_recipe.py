"""Exports that only a recipe can make (a Hugging Face folder): its `export`, run in a process of its own."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.export.destination import refused
from core.export.lines import ExportCancelledError
from core.parsing import parse_json
from core.processes import Child, ProcessTree
from core.processes.program_environment import program_environment
from core.recipes.manifest import Recipe
from core.run_folder.store import RunStore

LIMIT_S: Final = 3600.0
WHAT: Final = {"hf": "a Hugging Face folder"}
_POLL_S: Final = 0.05


class RecipeExportError(RankdeckError):
    """The recipe's own code could not do it."""

    title = "The recipe could not export the run"


def check_recipe(recipe: Recipe | None, problem: str, kind: str, run: str) -> Recipe:
    """The recipe, if it can export `run` to `kind`.

    Args:
        recipe: None where it cannot be used here.
        problem: Why not.
        kind: What is wanted.
        run: The run's name.

    Raises:
        UsageError: It cannot, or it is not here.
    """
    if recipe is None:
        raise refused(problem, "Restore the run's recipe. To list recipes: rankdeck recipes")
    if kind not in recipe.exports:
        raise refused(
            f"{recipe.title} cannot export its weights as {WHAT[kind]}.",
            "Export the weights as safetensors.",
            f"rankdeck export {run} --to safetensors",
        )
    return recipe


def run_export(
    store: RunStore,
    recipe: Recipe,
    weights: Path,
    target: Path,
    *,
    limit_s: float = LIMIT_S,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Has the recipe fill `target`. Blocks; may be called from any thread.

    Args:
        store: The run.
        recipe: Its recipe.
        weights: A file of whole weights.
        target: An empty folder.
        limit_s: After that the process is ended.
        cancelled: Asked now and then.

    Raises:
        RecipeExportError: It failed, took too long, or left nothing in the folder.
        ExportCancelledError: `cancelled` said so.
    """
    with tempfile.TemporaryDirectory(prefix="rankdeck-export-", ignore_cleanup_errors=True) as name:
        log = Path(name) / "export.log"
        folders = (str(store.dir), str(recipe.folder), str(weights), str(target))
        argv = (sys.executable, "-m", "workers.programs.export_main", *folders)
        with ProcessTree() as tree:
            own = {"PYTHONIOENCODING": "utf-8", **store.config().env}
            child = tree.spawn(argv, program_environment(os.environ, own), Path(name), log)
            _wait(child, time.monotonic() + limit_s, limit_s, cancelled)
        if child.returncode != 0:
            raise _failure(recipe, child, log)
    if not any(target.iterdir()):
        raise RecipeExportError(f"{recipe.title} wrote nothing to the export folder.", "Correct its export(given).")


def _wait(child: Child, deadline: float, limit_s: float, cancelled: Callable[[], bool]) -> None:
    while child.poll() is None:
        if cancelled():
            raise ExportCancelledError("The export was cancelled.", "Nothing was written.")
        if time.monotonic() > deadline:
            raise RecipeExportError(f"It did not finish within {limit_s:g} s.", "Look into its export(given).")
        time.sleep(_POLL_S)


def _failure(recipe: Recipe, child: Child, log: Path) -> RankdeckError:
    """The words that the process ended with, else its last line."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    values: Any = None
    for line in reversed(lines):
        try:
            values = parse_json(line)
            break
        except ValueError:
            continue
    if isinstance(values, dict) and isinstance(values.get("cause"), str):
        return RecipeExportError(values["cause"], str(values.get("next_step") or ""), title=str(values.get("title")))
    last = f": {lines[-1].strip()}" if lines else ""
    return RecipeExportError(f"Its process {child.outcome}{last}.", f"Look into {recipe.folder / recipe.entry}.")
