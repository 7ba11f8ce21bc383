"""`read_options`: a recipe's options as an object of its own class."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from types import SimpleNamespace
from typing import Any, Literal, Optional

import pytest

from core.config import RunConfig
from core.recipes.catalog import find_recipes
from core.recipes.manifest import recipe_defaults
from rankdeck.recipe import ConfigError, Request, read_options


@dataclass(frozen=True)
class Options:
    width: int
    rate: float
    kind: Literal["a", "b"]
    start: str | None
    end: Optional[str] = "a default of the class is not used"  # noqa: UP045 - both ways to write it


GOOD: dict[str, Any] = {"width": 8, "rate": 1, "kind": "a", "fast": True}


def read(**changes: Any) -> Options:
    return read_options(SimpleNamespace(options=GOOD | changes), Options)


def test_names_are_attributes_and_an_empty_optional_field_is_none() -> None:
    assert read() == Options(8, 1, "a", None, None)
    assert read(start="x").start == "x"
    with pytest.raises(FrozenInstanceError):
        read().width = 9  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("width", None, "this run has no value for it"),
        ("width", "8", "The option 'width' is '8', but the recipe declares it as int"),
        ("width", True, "declares it as int"),
        ("rate", "fast", "declares it as float"),
        ("kind", "c", "declares it as Literal['a', 'b']"),
        ("start", 3, "declares it as str | None"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**{name: value})
    error = caught.value
    assert (error.field, error.title) == (name, "Recipe options do not match")
    assert said in error.cause and f"Options.{name}" in error.cause and "recipe.toml" in error.next_step


def test_a_recipe_may_still_read_the_mapping() -> None:
    assert Request(RunConfig(options=GOOD)).options["width"] == 8


@pytest.mark.parametrize("name", ["minigpt", "actv1", "hf_causal_lm", "clstm_ppo"])
def test_the_built_in_recipes_declare_their_options(name: str) -> None:
    recipe = next(found for found in find_recipes() if found.name == name)
    module = __import__(f"workers.recipes.{name}.options", fromlist=["Options"])
    config = RunConfig(options=recipe_defaults(recipe)["options"])
    typed = read_options(Request(config), module.Options)
    assert {spec.name: spec.default for spec in recipe.fields} == {
        spec.name: getattr(typed, spec.name) for spec in recipe.fields
    }
