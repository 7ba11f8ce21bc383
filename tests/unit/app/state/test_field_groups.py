"""Groups of fields in the New run sheet."""

from __future__ import annotations

import dataclasses

import pytest

from app.state.draft_fields import form_fields
from app.state.field_groups import HOW, IN_SIGHT, WHAT, WHERE, grouped_fields
from core.config.fields import FieldSpec
from core.recipes.catalog import find_recipes, get_recipe

pytestmark = pytest.mark.windows


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
    assert names("minigpt", "Batch & steps") == ["grad_accum_steps", "global_batch_size", "keep_micro_batch"]
    assert "clip_norm" in names("clstm_ppo", "Optimizer") and "clip" in names("clstm_ppo", "Recurrent PPO")
    assert "text_column" in names("minigpt", "Data") and "samples_per_block" in names("minigpt", "Data")
    saving = names("minigpt", "Checkpoints & evaluation")
    assert saving[0] == "checkpoint_every_steps" and saving[-1] == "sample_temperature"
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
