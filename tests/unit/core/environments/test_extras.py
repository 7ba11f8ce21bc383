"""Extras of an environment: who needs them."""

from __future__ import annotations

from core.environments.wanted import OFFERED, list_extras
from core.machine.packages import find_extras
from core.recipes.catalog import find_recipes


def test_each_extra_names_the_recipes_that_need_it() -> None:
    extras = {extra.name: extra for extra in list_extras(find_recipes(), find_extras())}
    assert tuple(extras) == OFFERED
    assert "Hugging Face causal LM" in extras["hf"].note and "PPO" in extras["rl"].note
    assert extras["bpe"].note == ""
