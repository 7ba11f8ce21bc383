"""A recipe's code, loaded by path: the only place where it is imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

from core.errors import ConfigError
from core.recipes.manifest import Recipe


def load_function(recipe: Recipe, name: str, file: str = "") -> Callable[..., Any]:
    """A function of `file`, or of the recipe's entry file; files beside it can be imported by their names.

    Raises `ConfigError` where it has no such function, or is not a Python file.
    """
    path = recipe.folder / (file if file and (recipe.folder / file).is_file() else recipe.entry)
    spec = importlib.util.spec_from_file_location(f"rankdeck_recipe_{recipe.name}", path)
    if spec is None or spec.loader is None:
        raise ConfigError("recipe", f"{path} is not a Python file.", "Name one as `entry` in recipe.toml.")
    sys.path.append(str(recipe.folder))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function: Callable[..., Any] | None = getattr(module, name, None)
    if function is None:
        argument = {"main": "run", "export": "given"}.get(name, "")
        raise ConfigError("recipe", f"{path} has no function {name}({argument}).", "See docs/recipes.md.")
    return function
