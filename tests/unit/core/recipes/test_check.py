"""A recipe's own check: asked in a process of its own before a run, whatever it does there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from core.config import RunConfig
from core.data.dataset import identify
from core.errors import ConfigError
from core.machine.packages import MissingPackageError
from core.recipes.catalog import get_recipe
from core.recipes.check import check_by_recipe, check_text_column
from core.recipes.manifest import Recipe, apply_recipe

MANIFEST = """
format = "rankdeck-recipe"
version = 1
name = "mine"
title = "Mine"
check = "check.py"
[[fields]]
name = "width"
label = "Width"
type = "int"
default = 3
help = "How wide."
"""
READ = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    config = json.load(file)["config"]
print("a line for the log")
width = config["options"]["width"]
"""


def make(tmp_path: Path, program: str) -> tuple[RunConfig, Recipe]:
    folder = tmp_path / "Rézepte mit Raum" / "mine"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(MANIFEST, encoding="utf-8")
    (folder / "train.py").write_text("", encoding="utf-8")
    (folder / "check.py").write_text(READ + program, encoding="utf-8")
    recipe = get_recipe(str(folder))
    return apply_recipe(RunConfig(recipe=str(folder)), recipe), recipe


def text_column(config: RunConfig, **limit: float) -> tuple[str, ...]:
    text, notes = check_text_column(identify(config.dataset_file), config, **limit)
    return (text, *notes) if text else notes


def test_a_setting_is_refused_in_the_recipes_words(tmp_path: Path) -> None:
    words = '{"field": "width", "title": "Zu schmal", "cause": f"{width} is odd.", '
    words += '"next_step": "Choose 4.", "allows": "wide"}'
    with pytest.raises(ConfigError) as caught:
        check_by_recipe(*make(tmp_path, f"print(json.dumps({words}))"))
    error = caught.value
    assert (error.field, error.title, error.cause, error.next_step) == ("width", "Zu schmal", "3 is odd.", "Choose 4.")
    assert error.allows == "wide"


def test_notes_stop_nothing(tmp_path: Path) -> None:
    _, notes = check_by_recipe(*make(tmp_path, 'print(json.dumps({"notes": [f"{width} is few."]}))'))
    assert notes == ("3 is few.",)


def test_a_recipe_fits_what_was_left_at_its_defaults(tmp_path: Path) -> None:
    program = 'print(json.dumps({"notes": [], "settings": {"seq_len": 96, "lr": 5.0}}))'
    config, recipe = make(tmp_path, program)
    recipe = dataclasses.replace(recipe, defaults={"seq_len": 64})
    config = config.replace(seq_len=64)
    fitted, _ = check_by_recipe(config, recipe)
    assert (fitted.seq_len, fitted.lr) == (96, config.lr)
    assert check_by_recipe(config.replace(seq_len=32), recipe)[0].seq_len == 32, "it was chosen"
    assert check_by_recipe(config, recipe, named=frozenset({"seq_len"}))[0] == config, (
        "it was chosen, if as the default"
    )
    assert check_by_recipe(config, recipe, resumes=True)[0] == config


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path) -> None:
    with pytest.raises(MissingPackageError) as caught:
        check_by_recipe(*make(tmp_path, 'print(json.dumps({"missing": ["peft"], "cause": "LoRA"}))'))
    assert caught.value.cause == "LoRA needs the package peft, which is not installed here."
    assert "[hf]" in caught.value.next_step and "pip" not in caught.value.window_step


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit('its own fault')",
        "print('{}'); raise SystemExit('its own fault')",
        "print([1])",
        "import time; time.sleep(60)",
    ],
)
def test_a_check_that_fails_itself_stops_no_run(tmp_path: Path, program: str) -> None:
    _, (note,) = check_by_recipe(*make(tmp_path, program), limit_s=0.5 if "sleep" in program else 30.0)
    assert "could not be checked beforehand" in note
    assert "its own fault" in note or "its own" not in program


FUNCTION = """
from rankdeck.recipe import ConfigError, MissingPackageError, Request
import sys
def check(request: Request) -> list[str]:
    width = request.options["width"]
    if width == 5: raise ConfigError("width", "Five is odd.", "Choose 6.", title="An odd width")
    if width == 6: raise MissingPackageError(["peft"], "LoRA")
    return [f"{width} in {request.config.mode}", f"resumes: {request.resumes}", f"torch: {'torch' in sys.modules}"]
"""


def test_a_check_may_be_a_function_and_needs_no_torch(tmp_path: Path) -> None:
    config, recipe = make(tmp_path, "")
    (recipe.folder / "check.py").write_text(FUNCTION, encoding="utf-8")
    manifest = recipe.folder / "recipe.toml"
    text = manifest.read_text(encoding="utf-8").replace('check = "check.py"', "check = true")
    manifest.write_text(text, encoding="utf-8", newline="\n")
    recipe = get_recipe(str(recipe.folder))
    _, notes = check_by_recipe(config, recipe, resumes=True)
    assert notes == (f"3 in {config.mode}", "resumes: True", "torch: False")
    with pytest.raises(ConfigError) as refused:
        check_by_recipe(config.replace(options={"width": 5}), recipe)
    error = refused.value
    assert (error.field, error.title, error.cause) == ("width", "An odd width", "Five is odd.")
    with pytest.raises(MissingPackageError) as missing:
        check_by_recipe(config.replace(options={"width": 6}), recipe)
    assert missing.value.packages == ("peft",) and "LoRA needs the package peft" in missing.value.cause


def test_a_recipe_without_a_check_is_not_asked() -> None:
    unasked = dataclasses.replace(get_recipe("minigpt"), check="")
    assert check_by_recipe(RunConfig(), unasked) == (RunConfig(), ())


def test_only_tables_of_recipes_on_text_are_looked_at(tmp_path: Path) -> None:
    table = tmp_path / "Tabelle mit Raum.jsonl"
    table.write_text('{"title": "a", "body": "some words"}\n' * 50, encoding="utf-8", newline="\n")
    asked = apply_recipe(RunConfig(dataset_file=str(table)), get_recipe("minigpt"))
    found, short, same = text_column(asked)
    assert found == "Data: JSON Lines, text column body (guessed; not used: title), 50 documents, 600 tokens."
    assert short == "The texts in column body are short: 2.0 words on average."
    assert same == "Of 50 documents, many are the same text: 50 × “some words”."
    with table.open("a", encoding="utf-8", newline="\n") as file:
        file.write('{"body": NaN}\n{"body": "x\n')
    left_out = text_column(asked)[2]
    assert left_out.startswith("2 rows are left out: 1 empty, 1 broken. The first: ")
    assert left_out.endswith("row 51: empty.")
    prose = table.with_name("prose.txt")
    prose.write_text("Some words, and more.\nNo table.\n", encoding="utf-8", newline="\n")
    assert text_column(asked.replace(dataset_file=str(prose)), limit_s=0.0) == (
        "Data: plain text, 1 document, 34 tokens.",
    )
    prose.write_text("<html>Some words.</html>", encoding="utf-8", newline="\n")
    said, markup = text_column(asked.replace(dataset_file=str(prose)))
    assert said == "Data: plain text, 1 document, 26 tokens." and "HTML (prose.txt)" in markup
    asked = asked.replace(options={**asked.options, "text_column": "none"})
    with pytest.raises(ConfigError, match="The columns are: title, body") as caught:
        text_column(asked)
    assert caught.value.field == "text_column"
    prices = table.with_name("prices.csv")
    prices.write_text("day,price\n1,2.5\n2,2.75\n" * 20, encoding="utf-8", newline="\n")
    with pytest.raises(ConfigError, match="No column looks like text") as caught:
        text_column(asked.replace(dataset_file=str(prices), options={**asked.options, "text_column": None}))
    assert (caught.value.field, caught.value.title) == ("text_column", "Which column is the text?")
    (note,) = text_column(asked, limit_s=0.0)
    assert "could not be looked at beforehand" in note
    without = {name: value for name, value in asked.options.items() if name != "text_column"}
    assert text_column(asked.replace(options=without)) == ()
    for elsewhere in ("none://", "stdlib://"):
        assert text_column(asked.replace(dataset_file=elsewhere)) == ()


def test_a_check_that_is_not_there_is_the_recipes_problem(tmp_path: Path) -> None:
    _, recipe = make(tmp_path, "")
    (recipe.folder / "check.py").unlink()
    with pytest.raises(ConfigError, match=r"check is 'check\.py', and there is no such file"):
        get_recipe(str(recipe.folder))
