"""How large a recipe's model is, from its settings alone."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.recipes.catalog import get_recipe
from core.recipes.manifest import apply_recipe, recipe_defaults
from core.recipes.parameter_formula import ModelSize, ParameterCount, depends_on, model_size, read_count, read_formula


def size(recipe: str, options: dict[str, Any] | None = None, **changes: Any) -> ModelSize | None:
    found = get_recipe(recipe)
    config = apply_recipe(RunConfig(recipe=recipe, options=options or {}, **{**found.defaults, **changes}), found)
    return model_size(found.parameters, config)


def total(recipe: str, options: dict[str, Any] | None = None, **changes: Any) -> int:
    found = size(recipe, options, **changes)
    assert found is not None
    return found.count.total


def test_the_largest_minigpt_has_412_billion_parameters() -> None:
    largest = total("minigpt", {"n_layer": 128, "n_embd": 16384, "n_head": 128})
    assert 412e9 < largest < 413e9
    assert total("minigpt") == 840_448, "as the model itself counts"


def test_a_vocabulary_that_is_learned_counts_only_where_it_is() -> None:
    assert total("minigpt", {"tokenizer": "bpe", "vocab_size": 8192}) - total("minigpt") == (8192 - 256) * 128


def test_the_architectures_of_hugging_face_differ() -> None:
    many, few = total("hf_causal_lm"), total("hf_causal_lm", {"n_kv_head": 1})
    assert few < many < total("hf_causal_lm", model="gpt2"), "fewer key-value heads, no learned positions"


def test_weights_in_a_folder_are_counted_from_their_headers(tmp_path: Path) -> None:
    header = json.dumps({"__metadata__": {}, "w": {"shape": [100, 30]}, "b": {"shape": [30]}}).encode()
    for name in ("model-1-of-2.safetensors", "model-2-of-2.safetensors"):
        (tmp_path / name).write_bytes(struct.pack("<Q", len(header)) + header)
    whole = size("hf_causal_lm", model=str(tmp_path))
    adapted = size("hf_causal_lm", {"training": "lora", "lora_frozen": "bf16"}, model=str(tmp_path))
    assert whole is not None and (whole.count.total, whole.count.trained, whole.weight_bytes) == (6060, 6060, 4)
    assert adapted is not None and (adapted.count.total, adapted.count.trained, adapted.weight_bytes) == (6060, 0, 2)
    (tmp_path / "model-2-of-2.safetensors").write_bytes(b"broken")
    assert size("hf_causal_lm", model=str(tmp_path)) is None, "nothing rather than a wrong figure"


def test_what_is_not_known_is_not_guessed() -> None:
    assert size("hf_causal_lm", model="owner/name") is None and size("actv1", model="owner/name") is None
    assert size("clstm_ppo") is None and model_size(None, RunConfig()) is None


@pytest.mark.parametrize(
    "table",
    [[], {"term": []}, {"terms": [{"product": "n"}]}, {"terms": [{"product": [1], "when": ["a"]}]}, {"terms": [1]}],
)
def test_a_formula_that_cannot_be_read_is_said(table: object) -> None:
    with pytest.raises(ValueError, match="parameters"):
        read_formula(table)


def test_only_what_builds_the_model_asks_anew() -> None:
    start = RunConfig(**recipe_defaults(get_recipe("minigpt")))
    assert depends_on(start.replace(lr=1e-5, steps=7, batch_size=2)) == depends_on(start)
    for changes in ({"seq_len": 64}, {"model": "gpt2"}, {"options": {**start.options, "n_layer": 5}}):
        assert depends_on(start.replace(**changes)) != depends_on(start)


def test_an_answer_without_a_count_has_none() -> None:
    assert read_count({"total": 7, "trained": 5}) == ParameterCount(7, 5)
    for values in ({}, {"total": 7}, {"total": "many", "trained": 5}, {"total": -1, "trained": 5}):
        assert read_count(values) is None
