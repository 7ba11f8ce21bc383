"""Fields of the New run sheet, under which headings, and which of them have an effect."""

from __future__ import annotations

import dataclasses

import pytest

from app.form.draft_fields import (
    HOW,
    IN_SIGHT,
    OF_MODE,
    WHAT,
    WHERE,
    default_mode_texts,
    fields_of_mode,
    fields_without_effect,
    form_fields,
    given_text,
    grouped_fields,
    is_given,
    settings_without_meaning,
    text_of,
)
from core.config.fields import FieldSpec
from core.config.run_config import FIELD_BY_NAME
from core.recipes.catalog import find_recipes, get_recipe

pytestmark = pytest.mark.windows


def test_an_empty_field_says_nothing_unless_text_may_be_empty() -> None:
    spec = {field.name: field for field in form_fields(get_recipe("minigpt"))}
    assert not is_given(spec["steps"], " ", "1000") and is_given(spec["steps"], "5", "1000")
    assert is_given(spec["sample_prompt"], "", "def ") and not is_given(spec["text_column"], "", "")


def test_a_value_that_was_switched_off_is_told_from_one_that_was_never_set() -> None:
    assert given_text(FIELD_BY_NAME["checkpoint_every_s"], None) == "none"
    assert given_text(FIELD_BY_NAME["checkpoint_every_steps"], None) == ""
    assert text_of(FIELD_BY_NAME["lr"], 0.001) == "0.001"


def test_what_a_mode_does_not_use_is_left_out() -> None:
    texts = default_mode_texts()
    assert "zero_stage" in fields_of_mode("zero", texts) and fields_of_mode("ddp", texts) == ()
    assert settings_without_meaning("ddp", texts, 1) == frozenset(OF_MODE)
    assert "sync_method" in settings_without_meaning("ddp", texts, 2)
    assert settings_without_meaning("auto", texts, 2) == frozenset()


def test_a_fields_effect_follows_the_field_it_depends_on() -> None:
    recipe = get_recipe("minigpt")
    assert fields_without_effect(recipe, {}) == {"vocab_size": "Byte tokens are always 256."}
    assert fields_without_effect(recipe, {"tokenizer": "bpe"}) == {}


def names(recipe: str, group: str) -> list[str]:
    return [spec.name for spec in grouped_fields(get_recipe(recipe)).get(group, ())]


@pytest.mark.parametrize("recipe", [recipe.name for recipe in find_recipes()])
def test_every_field_has_one_place_and_rare_ones_are_out_of_sight(recipe: str) -> None:
    groups = grouped_fields(get_recipe(recipe))
    placed = [spec.name for specs in groups.values() for spec in specs]
    assert sorted(placed) == sorted(spec.name for spec in form_fields(get_recipe(recipe)))
    assert sum(len(specs) for title, specs in groups.items() if title in IN_SIGHT) <= 14


def test_what_people_set_first_is_in_sight() -> None:
    assert names("minigpt", HOW)[:4] == ["steps", "epochs", "batch_size", "seq_len"]
    assert names("minigpt", WHERE) == ["precision"] and names("minigpt", WHAT) == []
    assert names("hf_causal_lm", WHAT) == ["model"]
    assert names("script", WHAT)[0] == "script" and names("script", WHERE) == []


def test_the_rest_is_grouped() -> None:
    assert names("minigpt", "Batch & steps") == ["grad_accum_steps", "global_batch_size"]
    assert "clip_norm" in names("clstm_ppo", "Optimizer") and "clip" in names("clstm_ppo", "Recurrent PPO")
    assert "text_column" in names("minigpt", "Data") and "samples_per_block" in names("minigpt", "Data")
    saving = names("minigpt", "Checkpoints & evaluation")
    assert saving[0] == "eval_every" and saving[-1] == "sample_temperature"
    assert names("hf_causal_lm", "LoRA")[0] == "lora_rank" and "stop_signal" in names("script", "A script of your own")


def test_a_recipe_says_where_its_fields_stand() -> None:
    fields = (
        FieldSpec("often", "Often", "int", common=True, group="Optimizer"),
        FieldSpec("shape", "Shape", "int", group="What"),
        FieldSpec("decay", "Decay", "int", group="Optimizer"),
        FieldSpec("rules", "Rules", "int", group="Its own"),
        FieldSpec("other", "Other", "int"),
    )
    groups = grouped_fields(dataclasses.replace(get_recipe("minigpt"), title="Mine", fields=fields))
    assert [spec.name for spec in groups[HOW]][-1] == "often", "what is common is in sight"
    assert [spec.name for spec in groups[WHAT]] == ["shape"]
    own = {title: [spec.name for spec in groups[title]] for title in ("Optimizer", "Mine", "Its own")}
    assert own == {"Optimizer": ["non_finite", "non_finite_limit", "decay"], "Mine": ["other"], "Its own": ["rules"]}
    titles = list(groups)
    assert titles.index("Optimizer") < titles.index("Mine") < titles.index("Its own") < titles.index("Data")
