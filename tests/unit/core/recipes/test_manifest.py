"""Recipes: the built-in ones are whole, a user's broken one is listed with its problem and breaks nothing."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.errors import ConfigError
from core.recipes.catalog import find_recipes, get_recipe
from core.recipes.manifest import Recipe, apply_recipe, check_options, recipe_defaults

GOOD = """
format = "rankdeck-recipe"
version = 1
name = "{name}"
title = "Mine"
modes = ["single", "ddp"]
[defaults]
steps = 40
batch_size = 4
[[fields]]
name = "depth"
label = "Depth"
type = "int"
default = 2
minimum = 1
maximum = 9
[[fields]]
name = "kind"
type = "choice"
choices = ["a", "b"]
default = "a"
[[fields]]
name = "prompt"
type = "str"
default = ""
"""


def write_recipe(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(text, encoding="utf-8", newline="\n")
    (folder / "train.py").write_text("", encoding="utf-8", newline="\n")
    return folder


@pytest.fixture
def mine(tmp_path: Path) -> Recipe:
    write_recipe(tmp_path / "mine", GOOD.format(name="mine"))
    return get_recipe(str(tmp_path / "mine"))


def test_a_recipe_declares_that_it_uses_a_model(tmp_path: Path) -> None:
    for name, head, default, expected in (
        ("plain", "", "", False),
        ("declared", "uses_model = true\n", "", True),
        ("default", "", 'model = "small"\n', True),
    ):
        text = GOOD.format(name=name).replace("[defaults]\n", f"{head}[defaults]\n{default}")
        write_recipe(tmp_path / name, text)
        assert get_recipe(str(tmp_path / name)).uses_model is expected
    used = {recipe.name for recipe in find_recipes() if recipe.uses_model}
    assert used == {"hf_causal_lm"}


def test_every_built_in_recipe_is_whole_and_explains_each_field() -> None:
    recipes = find_recipes()
    assert "minigpt" in [recipe.name for recipe in recipes]
    for recipe in recipes:
        assert recipe.problem == "", recipe.name
        assert recipe.title
        assert recipe.description
        for spec in recipe.fields:
            assert spec.help, f"{recipe.name}: {spec.name}"
            assert spec.label != spec.name, f"{recipe.name}: {spec.name}"


def test_the_built_in_recipe_fills_a_config_that_says_nothing() -> None:
    minigpt = get_recipe("minigpt")
    config, defaults = apply_recipe(RunConfig(), minigpt), minigpt.defaults
    assert (config.steps, config.batch_size) == (defaults["steps"], defaults["batch_size"])
    assert config.options["n_layer"] == 4
    assert config.options["tokenizer"] == "byte"
    assert apply_recipe(config, minigpt) == config


BROKEN = {
    "not toml": ("name = [", "is not TOML"),
    "another format": ('format = "x"', "format is 'x'"),
    "a newer version": ('format = "rankdeck-recipe"\nversion = 2', "version is 2"),
    "unknown key": (GOOD.format(name="broken") + "\nrange = 3", "unknown key 'range'"),
    "misspelt key": (GOOD.format(name="broken").replace("minimum", "minimun"), "Did you mean 'minimum'"),
    "another name": (GOOD.format(name="other"), "must be the folder's name"),
    "minimum above maximum": (GOOD.format(name="broken").replace("minimum = 1", "minimum = 10"), "above maximum"),
    "default out of range": (GOOD.format(name="broken").replace("default = 2", "default = 20"), "20 is above 9"),
    "default of another type": (GOOD.format(name="broken").replace("default = 2", 'default = "2"'), "not a number"),
    "default not a choice": (GOOD.format(name="broken").replace('default = "a"', 'default = "c"'), "not one of"),
    "no default": (GOOD.format(name="broken").replace("default = 2", ""), "nothing was given"),
    "choices for a number": (GOOD.format(name="broken").replace("minimum = 1", 'choices = ["1"]'), "choices belong"),
    "unknown default": (GOOD.format(name="broken").replace("steps = 40", "stepz = 40"), "Did you mean 'steps'"),
    "bad default": (GOOD.format(name="broken").replace("steps = 40", "steps = 0"), "0 is below 1"),
    "unknown mode": (GOOD.format(name="broken").replace('"ddp"]', '"magic"]'), "must be a list out of"),
    "fields not a list": ('format = "rankdeck-recipe"\nversion = 1\nfields = 3', "must be a list"),
    "title not text": (GOOD.format(name="broken").replace('"Mine"', "7"), "title is 7; it must be text"),
    "when not a pair": (
        GOOD.format(name="broken").replace("minimum = 1", 'when = "x"'),
        "a field's name and what that",
    ),
    **{
        f"variant {table}": (GOOD.format(name="broken") + f"\n[[variants]]\n{table}\n", "[[variants]]")
        for table in (
            'when = { model = "!a" }',
            'when = { modle = "!a" }\ndefaults = { lr = 1e-4 }',
            'when = { model = "!a" }\ndefaults = { lr = -1.0 }',
            'when = { model = "!a" }\ndefaults = { recipe = "x" }',
        )
    },
    "flag not a flag": (GOOD.format(name="broken").replace("minimum = 1", "common = 1"), "must be true or false"),
}


@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_recipe_is_listed_with_its_problem(tmp_path: Path, text: str, words: str) -> None:
    write_recipe(tmp_path / "broken", text)
    write_recipe(tmp_path / "whole", GOOD.format(name="whole"))
    recipes = {recipe.name: recipe for recipe in find_recipes([tmp_path])}
    assert words in recipes["broken"].problem
    assert recipes["whole"].problem == ""
    with pytest.raises(ConfigError, match="cannot be used") as caught:
        get_recipe(str(tmp_path / "broken"))
    assert words in caught.value.cause


def test_a_recipe_without_its_training_code_is_broken(tmp_path: Path) -> None:
    (write_recipe(tmp_path / "mine", GOOD.format(name="mine")) / "train.py").unlink()
    assert "no such file" in find_recipes([tmp_path])[-1].problem


def test_a_recipe_that_is_not_utf8_is_broken(tmp_path: Path) -> None:
    (write_recipe(tmp_path / "mine", "") / "recipe.toml").write_bytes(b'title = "\xff"')
    assert "is not TOML" in find_recipes([tmp_path])[-1].problem


def test_options_are_completed_and_checked(mine: Recipe) -> None:
    assert check_options(mine, {}) == {"depth": 2, "kind": "a", "prompt": ""}
    assert check_options(mine, {"depth": "7", "prompt": "x"}) == {"depth": 7, "kind": "a", "prompt": "x"}
    for options, words in (
        ({"depht": 3}, "Did you mean 'depth'"),
        ({"zzz": 3}, "depth, kind, prompt"),
        ({"depth": 10}, "from 1 to 9"),
        ({"depth": None}, "from 1 to 9"),
        ({"kind": "c"}, "one of a, b"),
    ):
        with pytest.raises(ConfigError) as caught:
            check_options(mine, options)
        assert words in caught.value.next_step
        assert caught.value.field in options


def test_a_mode_the_recipe_does_not_have_is_refused(mine: Recipe) -> None:
    with pytest.raises(ConfigError, match="does not support parallel-independent"):
        apply_recipe(RunConfig(recipe="mine", mode="independent"), mine)


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ({}, {"steps": 40, "batch_size": 4}),
        ({"steps": 7}, {"steps": 7, "batch_size": 4}),
        ({"epochs": 2}, {"steps": None, "batch_size": 4}),
        ({"batch_size": 16}, {"steps": 40, "batch_size": 16}),
        ({"grad_accum_steps": 2}, {"steps": 40, "batch_size": 4}),
        ({"global_batch_size": 64}, {"steps": 40, "batch_size": None}),
        ({"global_batch_size": 64, "batch_size": 8}, {"steps": 40, "batch_size": 8}),
    ],
)
def test_a_default_never_contradicts_what_was_given(
    mine: Recipe, given: dict[str, Any], filled: dict[str, int | None]
) -> None:
    applied = apply_recipe(RunConfig(recipe="mine", **given), mine)
    started = RunConfig(**{**recipe_defaults(mine, given), **given})
    for name, value in filled.items():
        assert getattr(applied, name) == getattr(started, name) == value
    assert applied.options == started.options


def test_packages_that_a_recipe_requires_are_names_as_they_are_imported(tmp_path: Path) -> None:
    head = GOOD.format(name="needy").replace("[defaults]", 'requires = ["transformers", "peft"]\n[defaults]')
    write_recipe(tmp_path / "needy", head)
    assert get_recipe(str(tmp_path / "needy")).requires == ("transformers", "peft")
    write_recipe(tmp_path / "wrong", head.replace("needy", "wrong").replace('"peft"', '"peft>=0.15"'))
    with pytest.raises(ConfigError, match="requires is"):
        get_recipe(str(tmp_path / "wrong"))


def test_some_values_bring_other_defaults() -> None:
    recipe = get_recipe("hf_causal_lm")

    def defaults(given: Collection[str] = (), **chosen: str) -> tuple[Any, ...]:
        values = recipe_defaults(recipe, given, chosen)
        return values.get("lr"), values["seq_len"], values["options"]["weight_decay"]

    assert defaults() == defaults(model="") == defaults(model="qwen3") == (1e-3, 128, 0.1)
    assert defaults(model="/models/mine") == defaults(model="owner/name", training="full") == (2e-5, 1024, 0.1)
    assert defaults(model="/models/mine", training="lora") == (2e-4, 1024, 0.0)
    assert defaults(["lr"], model="/models/mine") == (None, 1024, 0.1), "what is given stays"
