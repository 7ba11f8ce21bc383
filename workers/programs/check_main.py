"""Runs a recipe's `check(request)`, for `core.recipes.check`: `python -m workers.programs.check_main RECIPE FILE`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from core.config.config_file import without_version
from core.config.layers import config_from_mapping
from core.recipes.catalog import get_recipe
from core.recipes.manifest import CHECK
from workers.programs.answer import answer
from workers.recipe_api.loader import load_function
from workers.recipe_api.refusals import Checked, Request


def check(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    config = config_from_mapping(without_version(asked.pop("config"), folder))
    found = load_function(get_recipe(sys.argv[1]), "check", CHECK)(Request(config, **asked))
    checked = found if isinstance(found, Checked) else Checked(found)
    return {"notes": list(checked.notes), "settings": dict(checked.settings)}


if __name__ == "__main__":
    answer(check, defects=False)
