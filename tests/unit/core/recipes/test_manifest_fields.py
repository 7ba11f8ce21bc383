"""A recipe's own fields, read from tables."""

from __future__ import annotations

import pytest

from core.recipes.manifest_fields import ManifestError, known_keys, nearest_name, read_fields


def test_a_field_has_defaults_for_what_is_left_out() -> None:
    (spec,) = read_fields([{"name": "layers", "type": "int", "default": 4}])
    assert (spec.name, spec.label, spec.default, spec.choices) == ("layers", "layers", 4, ())


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"name": "layers"}, "list of [[fields]] tables"),
        ([{"name": "Layers", "type": "int", "default": 4}], "small letters"),
        ([{"name": "steps", "type": "int", "default": 4}], "a common one of every run"),
        ([{"name": "layers", "type": "whole", "default": 4}], "type is 'whole'"),
        ([{"name": "layers", "type": "str", "default": "", "minimum": 1}], "only a number has a minimum"),
        ([{"name": "a", "type": "int", "default": 1}] * 2, "Two fields have the name 'a'"),
    ],
)
def test_what_cannot_be_used_is_refused(tables: object, why: str) -> None:
    with pytest.raises(ManifestError) as refused:
        read_fields(tables)
    assert why in str(refused.value)


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(ManifestError) as refused:
        known_keys("recipe.toml", {"titel": "x"}, ("title", "name"))
    assert "Did you mean 'title'?" in str(refused.value)
    assert nearest_name("xyz", ("title",)) == ""
