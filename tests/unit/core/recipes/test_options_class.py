"""A recipe's class `Options` against its recipe.toml: what differs is named, and nothing of it is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.cli import main
from core.errors import ConfigError
from core.recipes.catalog import find_recipes, get_recipe, recipes_stamp
from core.recipes.scaffold import new_recipe

MANIFEST = """
format = "rankdeck-recipe"
version = 1
name = "mine"
options = "options.py"
[[fields]]
name = "width"
type = "int"
default = 8
[[fields]]
name = "rate"
type = "float"
default = 0.5
[[fields]]
name = "kind"
type = "choice"
default = "a"
choices = ["a", "b"]
[[fields]]
name = "start"
type = "path"
optional = true
"""
DECLARED = """
raise SystemExit("a listing must not import this")
from dataclasses import dataclass
from typing import Literal
@dataclass(frozen=True)
class Options:
    width: int
    rate: float
    kind: Literal["a", "b"]
    start: str | None
"""


def problem(folder: Path, declared: str) -> str:
    """What the listing says of a recipe with this options.py."""
    recipe = folder / "mine"
    recipe.mkdir()
    (recipe / "recipe.toml").write_text(MANIFEST, encoding="utf-8")
    (recipe / "train.py").write_text("", encoding="utf-8")
    (recipe / "options.py").write_text(declared, encoding="utf-8")
    return next(found for found in find_recipes([folder]) if found.name == "mine").problem


@pytest.mark.parametrize(
    "same",
    [
        DECLARED,
        DECLARED.replace("Literal[", "typing.Literal["),
        DECLARED.replace('Literal["a", "b"]', "str"),
        DECLARED.replace("@dataclass(frozen=True)", "@dataclasses.dataclass"),
        DECLARED + "    @property\n    def area(self) -> int:\n        return self.width ** 2\n",
    ],
)
def test_a_class_with_the_same_names_and_types_is_accepted(tmp_path: Path, same: str) -> None:
    assert problem(tmp_path, same) == ""


DIFFERENCES = [
    (("    width: int\n", ""), "does not declare the field 'width' of recipe.toml. Add: width: int"),
    (("width: int", "widht: int"), "declares 'widht', but recipe.toml has no such field. Did you mean 'width'?"),
    (("    rate", "    zoom: int\n    rate"), "declares 'zoom', but recipe.toml has no such field. Add a [[fields]]"),
    (("width: int", "width: str"), "declares 'width' as str, but its type in recipe.toml is 'int'. Write: width: int"),
    (('"a", "b"', '"a", "c"'), "Write: kind: Literal['a', 'b']"),
    (("str | None", "str"), "Write: start: str | None"),
    (("class Options", "class Settings"), "options.py has no dataclass Options."),
    (("@dataclass(frozen=True)\n", ""), "options.py has no dataclass Options."),
    (("width: int", "width: int ="), "options.py is not valid Python: invalid syntax (line 7)."),
    (("\n", "\0"), "options.py cannot be read"),
]


@pytest.mark.parametrize(("change", "said"), DIFFERENCES)
def test_what_differs_is_named_with_its_correction(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    assert said in problem(tmp_path, DECLARED.replace(*change))


def test_the_command_line_names_the_option_that_differs(runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = new_recipe("my-model") / "train.py"
    before = recipes_stamp()
    train.write_text(train.read_text(encoding="utf-8").replace("width: int", "width: float"), encoding="utf-8")
    assert recipes_stamp() != before, "an open window reads the recipe again"
    with pytest.raises(ConfigError) as caught:
        get_recipe("my-model")
    assert "declares 'width' as float" in caught.value.cause and str(train.parent) in caught.value.next_step
    main(["recipes"])
    assert "Write: width: int" in " ".join(capsys.readouterr().out.split())
    assert main(["train", "--recipe", "my-model", "--yes"]) == 2
    assert runs_dir.is_dir()
