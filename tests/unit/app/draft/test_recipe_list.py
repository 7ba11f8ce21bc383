"""List of recipes: what is read before its thread has looked."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.draft.recipe_list import RecipeList
from core.recipes import catalog


@pytest.mark.usefixtures("qtbot")
def test_one_recipe_is_found_without_reading_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first picture of a run needs its own recipe's heroes alone."""
    read: list[str] = []

    def counted(folder: Path) -> object:
        read.append(folder.name)
        return reader(folder)

    reader = catalog.read_recipe
    monkeypatch.setattr(catalog, "read_recipe", counted)
    recipes = RecipeList()
    for _ in range(2):
        found = recipes.named("minigpt")
        assert found is not None and found.title == "MiniGPT"
    assert read == ["minigpt"]
    assert recipes.named("no such recipe") is None
    assert {recipe.name for recipe in recipes.recipes} >= {"minigpt", "script"}
    assert recipes.named("minigpt") is not None and recipes.named("no such recipe") is None
