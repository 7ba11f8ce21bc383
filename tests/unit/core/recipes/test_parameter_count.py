"""Which settings a parameter count depends on, and what a program of one's own has none of."""

from __future__ import annotations

import pytest

from core.config.run_config import RunConfig
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults
from core.recipes.parameter_count import count_parameters, depends_on

pytestmark = pytest.mark.windows


def test_only_what_builds_the_model_asks_anew() -> None:
    start = RunConfig(**recipe_defaults(get_recipe("minigpt")))
    assert depends_on(start.replace(lr=1e-5, steps=7, batch_size=2)) == depends_on(start)
    for changes in ({"seq_len": 64}, {"model": "gpt2"}, {"options": {**start.options, "n_layer": 5}}):
        assert depends_on(start.replace(**changes)) != depends_on(start)


def test_a_script_has_no_count() -> None:
    recipe = get_recipe("script")
    assert count_parameters(RunConfig(**recipe_defaults(recipe)), recipe) is None


def test_what_is_wanted_no_more_is_ended() -> None:
    recipe = get_recipe("minigpt")
    assert count_parameters(RunConfig(**recipe_defaults(recipe)), recipe, lambda: False) is None
