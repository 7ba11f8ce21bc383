"""Counts the parameters of a recipe's model: `python -m workers.programs.parameter_count_main RECIPE SETTINGS`.

Started by `core.recipes.parameter_count`. The recipe's `build_model(request)` is called on the meta device: shapes
without memory, so that a model of any size is counted on any machine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from core.config.config_file import without_version
from core.config.layers import config_from_mapping
from core.recipes.catalog import get_recipe
from workers.programs.answer import answer
from workers.recipe_api.loader import load_function
from workers.recipe_api.refusals import Request


def count(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    """How many parameters the model has and how many are trained; nothing where the recipe cannot say it."""
    config = config_from_mapping(without_version(asked["config"], folder))
    build = load_function(get_recipe(sys.argv[1]), "build_model")
    with torch.device("meta"):
        model = build(Request(config))
    if model is None:
        return {}
    parameters = list(model.parameters())  # each once, however many layers share it
    trained = sum(one.numel() for one in parameters if one.requires_grad)
    return {"total": sum(one.numel() for one in parameters), "trained": trained}


if __name__ == "__main__":
    answer(count, defects=False)
