"""A recipe's code is loaded by path, with the files of its folder."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import ConfigError
from core.recipes.manifest import Recipe, read_recipe
from workers.recipe_api.loader import load_function


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recipe]:
    folder = tmp_path / "mine"
    folder.mkdir()
    files = {
        "recipe.toml": 'format = "rankdeck-recipe"\nversion = 1\nname = "mine"\ntitle = "Mine"\n',
        "train.py": "from beside_it import NAME\ndef main(run): return f'trains {NAME} {run}'\n",
        "check.py": "def check(request): return f'checks {request}'\n",
        "beside_it.py": "NAME = 'beside'\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield read_recipe(folder)
    for name in ("rankdeck_recipe_mine", "beside_it"):
        sys.modules.pop(name, None)


def test_a_function_is_found_in_its_file_or_in_the_entry_file(recipe: Recipe) -> None:
    assert load_function(recipe, "main")(1) == "trains beside 1"
    assert load_function(recipe, "check", "check.py")(2) == "checks 2"
    assert load_function(recipe, "main", "absent.py")(3) == "trains beside 3"


@pytest.mark.parametrize(
    ("name", "shown"), [("main", "main(run)"), ("export", "export(given)"), ("make_tokenizer", "make_tokenizer()")]
)
def test_a_missing_function_is_named_as_it_is_to_be_written(recipe: Recipe, name: str, shown: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_function(recipe, name, "check.py")
    assert f"check.py has no function {shown}." in caught.value.cause and "docs/recipes.md" in caught.value.next_step


def test_an_entry_that_is_no_python_file_is_refused(recipe: Recipe) -> None:
    with pytest.raises(ConfigError, match=r"recipe\.toml is not a Python file"):
        load_function(dataclasses.replace(recipe, entry="recipe.toml"), "main")
