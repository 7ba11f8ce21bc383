"""Fields of the New run sheet: which there are for a recipe, their defaults as text, and which have an effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from core.config.fields import FieldSpec, FieldValue
from core.config.mode import Mode
from core.config.run_config import FIELD_BY_NAME, FIELDS
from core.recipes.manifest import Recipe, recipe_defaults

MODE_FIELDS: Final = (
    "zero_stage",
    "zero_engine",
    "offload_optimizer",
    "offload_parameters",
    "deepspeed_config",
    "sync_every",
    "merge_policy",
    "merge_every_chunks",
)
"""Fields of `RunConfig` that stand under the mode they belong to."""
OF_MODE: Final = {spec.name: spec.modes for spec in FIELDS if spec.modes and spec.name not in MODE_FIELDS}
"""Rows of the form that mean something in these modes only."""
OWN_PLACES: Final = ("recipe", "dataset_file", "mode", "nodes", "lr_schedule", *MODE_FIELDS)
"""Fields of `RunConfig` that have a place of their own in the panel and are no row of the form."""


def form_fields(recipe: Recipe) -> tuple[FieldSpec, ...]:
    """The rows of the form: the common settings of every run, then the recipe's own.

    Of a recipe that runs a program its own come first, and only those common ones that mean something to it. The model
    stands among those used most where the recipe takes one, with a button to choose its folder; elsewhere it is left
    out.
    """
    left_out = OWN_PLACES if recipe.uses_model else {*OWN_PLACES, "model"}
    common = tuple(_model_field(spec) for spec in FIELDS if spec.name not in left_out)
    if recipe.self_contained:
        return (*recipe.fields, *(spec for spec in common if not recipe.uses or spec.name in recipe.uses))
    return (*common, *recipe.fields)


def _model_field(spec: FieldSpec) -> FieldSpec:
    return dataclasses.replace(spec, type="path", picks="folder", common=True) if spec.name == "model" else spec


def default_texts(recipe: Recipe, texts: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the form shows before anybody has typed: the recipe's defaults.

    Args:
        recipe: The chosen recipe.
        texts: The form's, by field: some bring other defaults.
    """
    defaults = recipe_defaults(recipe, (), texts)
    own = {spec.name for spec in recipe.fields}
    values = {
        spec.name: (defaults["options"] if spec.name in own else defaults).get(spec.name, spec.default)
        for spec in form_fields(recipe)
    }
    return {spec.name: text_of(spec, values[spec.name]) for spec in form_fields(recipe)}


def default_mode_texts() -> dict[str, str]:
    """What stands under the modes before anybody has chosen."""
    return {name: text_of(FIELD_BY_NAME[name], FIELD_BY_NAME[name].default) for name in MODE_FIELDS}


def fields_without_effect(recipe: Recipe, texts: Mapping[str, str]) -> dict[str, str]:
    """Why fields of a recipe have no effect beside what other fields hold, by field.

    Args:
        recipe: The chosen recipe.
        texts: The form's, by field; one that is empty has its default.
    """
    defaults = default_texts(recipe)
    held = {name: texts.get(name, "").strip() or default for name, default in defaults.items()}
    labels = {spec.name: spec.label for spec in form_fields(recipe)}
    return {
        spec.name: spec.instead or f"It has no effect with this value of {labels.get(spec.when[0], spec.when[0])}."
        for spec in recipe.fields
        if not spec.matters(held)
    }


def is_given(spec: FieldSpec, text: str, default: str) -> bool:
    """Whether a text says something: an empty field has its default, apart from text that may be empty on purpose."""
    return bool(text.strip()) or (spec.type == "str" and bool(default))


def fields_of_mode(mode: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Which of `MODE_FIELDS` mean something in a mode; "auto" may become independent."""
    shown = Mode.INDEPENDENT if mode == Mode.AUTO else Mode.read(mode)
    return tuple(name for name in MODE_FIELDS if _matters(FIELD_BY_NAME[name], shown, texts))


def _matters(spec: FieldSpec, mode: Mode, texts: Mapping[str, str]) -> bool:
    """Whether a field means something in a mode, beside what other fields of that mode hold."""
    of_mode = {name: text for name, text in texts.items() if mode in FIELD_BY_NAME[name].modes}
    return mode in spec.modes and spec.matters(of_mode)


def settings_without_meaning(mode: str, texts: Mapping[str, str], ranks: int) -> frozenset[str]:
    """Rows of the form that are left out, and stay at their defaults.

    Args:
        mode: The mode that is shown; "auto" may become any.
        texts: Those of `MODE_FIELDS`.
        ranks: Devices that are ticked; one alone shares nothing.
    """
    if ranks == 1:
        return frozenset(OF_MODE)
    if mode == Mode.AUTO:
        return frozenset()
    return frozenset(name for name in OF_MODE if not _matters(FIELD_BY_NAME[name], Mode.read(mode), texts))


def text_of(spec: FieldSpec, value: FieldValue) -> str:
    """A value as a field shows it; empty for none."""
    return "" if value is None else spec.text(value)


def given_text(spec: FieldSpec, value: FieldValue) -> str:
    """As `_text`; "none" where an empty field would have another value."""
    return "none" if value is None and spec.default is not None and spec.optional else text_of(spec, value)


def plain_text(value: FieldValue) -> str:
    """A value whose field is not known."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
