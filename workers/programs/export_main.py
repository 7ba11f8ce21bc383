"""Has a recipe export weights: `python -m workers.programs.export_main REQUEST`, started by `core.export.export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.config.layers import load_config
from core.recipes.catalog import get_recipe
from core.recipes.manifest import apply_recipe
from workers.programs.answer import answer
from workers.recipe_api.loader import load_function


def export(asked: dict[str, Any], _folder: Path) -> dict[str, Any]:
    from workers.recipe_api import Export

    run_dir = Path(asked["run_dir"])
    recipe = get_recipe(asked["recipe"])
    config = apply_recipe(load_config(run_dir / "run.toml"), recipe)
    given = Export(config, run_dir / "data", Path(asked["weights"]), Path(asked["target"]), asked["dtype"])
    load_function(recipe, "export")(given)
    return {}


if __name__ == "__main__":
    answer(export)
