"""Counts a model's parameters on the meta device: shapes without memory, so any size is counted on any machine."""

from __future__ import annotations

import torch

from core.config import RunConfig
from core.recipes.manifest import Recipe
from workers.recipe_api.loader import load_function
from workers.recipe_api.refusals import Request


def count_parameters(recipe: Recipe, config: RunConfig) -> dict[str, int]:
    """How many parameters the model has and how many are trained (`core.recipes.parameter_count`).

    Returns:
        Nothing where the recipe has no `build_model`, or cannot build a model with these settings.
    """
    try:
        build = load_function(recipe, "build_model")
        with torch.device("meta"):
            model = build(Request(config))
    except Exception:  # whatever the recipe's code raises: only its run has to say what is wrong
        return {}
    if model is None:
        return {}
    parameters = list(model.parameters())  # each once, however many layers share it
    trained = sum(one.numel() for one in parameters if one.requires_grad)
    return {"total": sum(one.numel() for one in parameters), "trained": trained}
