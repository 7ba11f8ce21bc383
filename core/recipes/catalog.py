"""Finds recipes: built in, a user's own, and those in a named folder."""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from core.errors import ConfigError
from core.paths import data_folder
from core.recipes.manifest import BUILT_IN, Recipe, broken_recipe, read_recipe
from core.recipes.manifest_fields import names_text, nearest_name


def user_recipes_folder() -> Path:
    """The folder for a person's new recipes."""
    return user_recipes_folders()[0]


def user_recipes_folders() -> tuple[Path, ...]:
    """The folders of a person's own recipes.

    `RANKDECK_RECIPES`; ``recipes`` below `RANKDECK_HOME`; ``recipes`` in the user's own data folder, where the first
    is not set.
    """
    named, home = (os.environ.get(name, "").strip() for name in ("RANKDECK_RECIPES", "RANKDECK_HOME"))
    folders = [Path(named).expanduser().absolute()] if named else []
    if home:
        folders.append(Path(home).expanduser().absolute() / "recipes")
    if not named:
        folders.append(data_folder() / "recipes")
    return tuple(dict.fromkeys(folders))


def recipes_stamp() -> tuple[tuple[str, int, int], ...]:
    """A value that changes with every file of the user's recipes. Cheap enough to compute every second."""
    stamp = []
    for folder in user_recipes_folders():
        files = (*folder.glob("*/recipe.toml"), *folder.glob("*/*.py"))
        for path in (folder, *sorted(folder.glob("*")), *sorted(files)):
            try:
                found = path.stat()
            except OSError:
                continue
            size = 0 if stat.S_ISDIR(found.st_mode) else found.st_size
            stamp.append((str(path), found.st_mtime_ns, size))
    return tuple(stamp)


def find_recipes(extra: Sequence[Path] = ()) -> list[Recipe]:
    """All recipes, usable and broken (`Recipe.problem`): built in, in `user_recipes_folders`, and in `extra`."""
    found: dict[str, Recipe] = {}
    broken: list[Recipe] = []
    for folder in (BUILT_IN, *user_recipes_folders(), *extra):
        for recipe in _in_folder(folder):
            if recipe.name not in found:
                found[recipe.name] = recipe
            else:
                taken = f"The name {recipe.name!r} is taken by the recipe in {found[recipe.name].folder}."
                broken.append(dataclasses.replace(recipe, problem=recipe.problem or taken))
    return [*found.values(), *broken]


def get_recipe(name: str) -> Recipe:
    """The recipe of that name, or in that folder; raises `ConfigError` where there is none or it is broken."""
    if (Path(name) / "recipe.toml").is_file():
        recipes = [read_recipe(Path(name).resolve())]
        recipe: Recipe | None = recipes[0]
    elif name in {path.parent.name for path in BUILT_IN.glob("*/recipe.toml")}:  # no other recipe can take the name
        recipes = [read_recipe(BUILT_IN / name)]
        recipe = recipes[0]
    else:
        recipes = find_recipes()
        recipe = next((recipe for recipe in recipes if recipe.name == name), None)
    if recipe is None:
        names = [recipe.name for recipe in recipes if not recipe.problem]
        raise ConfigError("recipe", f"There is no recipe {name!r}.", nearest_name(name, names) or names_text(names))
    if recipe.problem:
        raise ConfigError(
            "recipe",
            f"The recipe {recipe.name!r} cannot be used: {recipe.problem}",
            f"Correct the files in {recipe.folder}, or choose another recipe.",
        )
    return recipe


def _in_folder(folder: Path) -> list[Recipe]:
    try:
        manifests = {path.parent for path in folder.glob("*/recipe.toml")}
        # A folder with training code and no manifest was meant to be a recipe, so it is listed with its problem.
        return [read_recipe(path) for path in sorted(manifests | {path.parent for path in folder.glob("*/train.py")})]
    except OSError as error:
        return [broken_recipe(folder, f"The folder cannot be read ({error.strerror or error}).")]
