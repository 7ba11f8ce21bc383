"""Which recipes there are: built in, a person's own, and in a folder that is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.config.fields import FieldSpec
from core.errors import ConfigError
from core.recipes.catalog import find_recipes, get_recipe, recipes_stamp, user_recipes_folder, user_recipes_folders
from tests.unit.core.recipes.test_manifest import GOOD, write_recipe


def test_a_users_recipe_is_found_beside_the_built_in_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_recipe(tmp_path / "mine", GOOD.format(name="mine"))
    monkeypatch.setenv("RANKDECK_RECIPES", str(tmp_path))
    mine = get_recipe("mine")
    names = [recipe.name for recipe in find_recipes([tmp_path, tmp_path / "not there"])]
    assert names.index("minigpt") < names.index("mine")
    assert mine.folder == tmp_path / "mine"
    assert mine.modes == ("single", "ddp")
    assert mine.fields[1] == FieldSpec("kind", "kind", "choice", "a", choices=("a", "b"))
    assert get_recipe(str(mine.folder)) == mine


def test_a_name_that_is_taken_does_not_replace_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_recipe(tmp_path / "minigpt", GOOD.format(name="minigpt"))
    monkeypatch.setenv("RANKDECK_RECIPES", str(tmp_path))
    built_in, second = [recipe for recipe in find_recipes() if recipe.name == "minigpt"]
    assert built_in.problem == ""
    assert "is taken by" in second.problem
    assert get_recipe("minigpt") == built_in


def test_an_unknown_recipe_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no recipe 'minigtp'") as caught:
        get_recipe("minigtp")
    assert "minigpt" in caught.value.next_step
    assert caught.value.field == "recipe"


@pytest.mark.parametrize(
    ("named", "home", "folders"),
    [
        ("", "", ("data",)),
        ("", "home", ("home/recipes", "data")),
        ("mine", "", ("mine",)),
        ("mine", "home", ("mine", "home/recipes")),
        (" mine ", " ", ("mine",)),
        ("home/recipes", "home", ("home/recipes",)),
    ],
)
def test_where_a_persons_recipes_are_looked_for(
    named: str, home: str, folders: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("core.recipes.catalog.data_folder", lambda: tmp_path / "own")
    monkeypatch.setenv("RANKDECK_RECIPES", named)
    monkeypatch.setenv("RANKDECK_HOME", home)
    own = {"data": tmp_path / "own" / "recipes"}
    assert user_recipes_folders() == tuple(own.get(name, tmp_path / name) for name in folders)
    assert user_recipes_folder() == user_recipes_folders()[0]


def test_the_stamp_changes_with_a_file_of_a_persons_recipe_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKDECK_RECIPES", str(tmp_path))
    before = recipes_stamp()
    folder = write_recipe(tmp_path / "mine", GOOD.format(name="mine"))
    (folder / "notes.txt").write_text("x", encoding="utf-8")
    made = recipes_stamp()
    (folder / "notes.txt").write_text("longer", encoding="utf-8")
    assert before != made == recipes_stamp()
    os.utime(folder / "train.py", (5, 5))
    assert recipes_stamp() != made
