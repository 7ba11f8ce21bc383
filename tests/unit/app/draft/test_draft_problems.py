"""A recipe's own check of a draft: all that it refuses, not the first thing alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.draft.draft_problems import recipe_answer
from core.config.run_config import RunConfig
from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe
from core.recipes.manifest import Recipe, recipe_defaults

pytestmark = pytest.mark.windows
LINUX = Platform("linux", "2.13.0", None, 8)
CPU = Device("cpu:0", "cpu", 0, "A processor")
MANIFEST = """
format = "rankdeck-recipe"
version = 1
name = "picky"
check = "check.py"
"""
FIELD = '\n[[fields]]\nname = "{name}"\nlabel = "{name}"\ntype = "int"\ndefault = {default}\nhelp = "A number."\n'
PROGRAM = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    options = json.load(file)["config"]["options"]
for name in ("width", "depth"):
    if options[name] % 2:
        print(json.dumps({"field": name, "cause": f"{options[name]} is odd.", "next_step": "Choose 4."}))
        break
else:
    print(json.dumps({"notes": ["Fine."]}))
"""


@pytest.fixture
def picky(tmp_path: Path) -> Recipe:
    """A recipe that wants even numbers, and names the first that is odd."""
    folder = tmp_path / "picky"
    folder.mkdir()
    text = MANIFEST + "".join(FIELD.format(name=name, default=2) for name in ("width", "depth"))
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    (folder / "train.py").write_text("", encoding="utf-8")
    (folder / "check.py").write_text(PROGRAM, encoding="utf-8")
    return get_recipe(str(folder))


def run_of(recipe: Recipe, **options: int) -> ResolvedRun:
    values = recipe_defaults(recipe)
    config = RunConfig(**{**values, "options": values["options"] | options})
    return resolve_on(config, recipe, [CPU], LINUX)


def causes(problems: Mapping[str, RankdeckError]) -> dict[str, str]:
    return {name: error.cause for name, error in problems.items()}


def test_one_refusal_hides_no_other(picky: Recipe) -> None:
    answer = recipe_answer(run_of(picky, width=3, depth=5), None)
    assert causes(answer.problems) == {"width": "3 is odd.", "depth": "5 is odd."} and answer.notes == ()
    assert recipe_answer(run_of(picky), None).notes == ("Fine.",)


def test_a_refusal_of_a_default_ends_the_search() -> None:
    recipe = get_recipe("minigpt")
    answer = recipe_answer(run_of(recipe, n_head=3), None)
    assert causes(answer.problems) == {"n_embd": "Width must be divisible by heads (128 ÷ 3)."}
