"""Which settings a parameter count depends on, and how a program's answer is read."""

from __future__ import annotations

from core.config.run_config import RunConfig
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults
from core.recipes.parameter_count import ParameterCount, depends_on, read_count


def test_only_what_builds_the_model_asks_anew() -> None:
    start = RunConfig(**recipe_defaults(get_recipe("minigpt")))
    assert depends_on(start.replace(lr=1e-5, steps=7, batch_size=2)) == depends_on(start)
    for changes in ({"seq_len": 64}, {"model": "gpt2"}, {"options": {**start.options, "n_layer": 5}}):
        assert depends_on(start.replace(**changes)) != depends_on(start)


def test_an_answer_without_a_count_has_none() -> None:
    assert read_count({"total": 7, "trained": 5}) == ParameterCount(7, 5)
    for values in ({}, {"total": 7}, {"total": "many", "trained": 5}, {"total": -1, "trained": 5}):
        assert read_count(values) is None
