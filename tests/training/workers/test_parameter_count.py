"""Parameter counts: of every recipe's real model, built without its weights in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.config.config_file import to_json
from core.config.run_config import RunConfig
from core.parsing import parse_json
from core.processes.ask import ask_program
from core.recipes.catalog import get_recipe
from core.recipes.manifest import Recipe, recipe_defaults
from core.recipes.parameter_formula import ParameterCount, read_count
from core.recipes.scaffold import new_recipe

LIMIT_S = 120.0
# What the probe does first.
PROGRAM = """
from core.config.config_file import without_version
from core.config.layers import config_from_mapping
from core.recipes.catalog import get_recipe
from workers.measure.figures import count_parameters
from workers.programs.answer import answer

def count(asked, folder):
    return count_parameters(get_recipe(asked["recipe"]), config_from_mapping(without_version(asked["config"], folder)))

answer(count)
"""


def count(recipe: Recipe, options: dict[str, Any] | None = None, **changes: Any) -> ParameterCount | None:
    values = recipe_defaults(recipe)
    config = RunConfig(**{**values, **changes, "options": {**values["options"], **(options or {})}})
    asked = {"recipe": str(recipe.folder), "config": parse_json(to_json(config))}
    values = ask_program(("-c", PROGRAM), asked, {}, LIMIT_S).values
    assert values is not None
    return read_count(values)


def whole(size: int) -> ParameterCount:
    return ParameterCount(size, size)


def test_minigpt_is_counted_at_any_size() -> None:
    minigpt, width, text = get_recipe("minigpt"), 128, 256
    block = 12 * width**2 + 9 * width  # 4 width² of attention and 8 width² of feed-forward, biases and norms
    assert count(minigpt) == whole(4 * block + (text + 128 + 2) * width)
    large = {"n_layer": 96, "n_head": 96, "n_embd": 12288, "tokenizer": "bpe", "vocab_size": 50257}
    counted = count(minigpt, large)
    assert counted is not None and counted.total > 170e9, "more than any machine holds"


def test_a_recipe_of_ones_own_may_leave_it_out(tmp_path: Path) -> None:
    recipe = get_recipe(str(new_recipe("mine", tmp_path)))
    assert count(recipe) is None
    with (recipe.folder / "train.py").open("a", encoding="utf-8") as file:
        file.write("\n\ndef build_model(request):\n    return nn.Linear(request.options['width'], 3)\n")
    assert count(recipe, {"width": 5}) == whole(18)
    assert count(recipe, {"width": "many"}) is None, "with that no model can be built"


def test_the_others_build_their_models_too() -> None:
    actv1, ppo = count(get_recipe("actv1")), count(get_recipe("clstm_ppo"))
    assert actv1 == whole(856_322) and ppo == whole(100_227)
