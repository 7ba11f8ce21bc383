"""The formulas of the recipes here, beside the models themselves."""

from __future__ import annotations

from typing import Any

import pytest

from core.config import RunConfig
from core.recipes.catalog import get_recipe
from core.recipes.manifest import apply_recipe
from core.recipes.parameter_formula import model_size
from workers.measure.figures import count_parameters

LARGE = {"n_layer": 6, "n_embd": 768, "n_head": 12}


@pytest.mark.parametrize(
    ("recipe", "model", "options"),
    [
        ("minigpt", None, {}),
        ("minigpt", None, {**LARGE, "tokenizer": "bpe", "vocab_size": 10_000}),
        ("actv1", None, {"n_embd": 768, "n_head": 12, "h_layers": 3, "l_layers": 5}),
        ("actv1", None, {"n_embd": 256, "tokenizer": "bpe", "vocab_size": 10_000}),
        ("hf_causal_lm", "gpt2", LARGE),
        ("hf_causal_lm", "llama", {**LARGE, "n_kv_head": 4}),
        ("hf_causal_lm", "qwen3", LARGE),
    ],
)
def test_a_formula_counts_what_the_model_has(recipe: str, model: str | None, options: dict[str, Any]) -> None:
    if recipe == "hf_causal_lm":
        pytest.importorskip("transformers", reason="builds its models")
    found = get_recipe(recipe)
    changes = {**found.defaults, **({} if model is None else {"model": model})}
    config = apply_recipe(RunConfig(recipe=recipe, options=options, **changes), found)
    size = model_size(found.parameters, config)
    assert size is not None
    assert size.count.total == pytest.approx(count_parameters(found, config)["total"], rel=0.01)
