"""Fields of the New run sheet: which there are for a recipe, under which headings, and which have an effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.config.fields import FieldSpec, FieldValue
from core.config.mode import Mode
from core.config.run_config import FIELD_BY_NAME, FIELDS
from core.recipes.manifest import Recipe, recipe_defaults

WHAT: Final = "What"
WHERE: Final = "Where"
HOW: Final = "How"
IN_SIGHT: Final = (WHAT, WHERE, HOW)
_MODE: Final = "Mode"
_OF_RECIPE: Final = ""
# From the top down; those that are not in sight are under Advanced. Other headings of a recipe follow its own.
_HEADINGS: Final = (
    *(*IN_SIGHT, "Batch & steps", "Optimizer", _OF_RECIPE, "Data"),
    *("Checkpoints & evaluation", "Early stopping", "Distribution", "System"),
)
# Settings that stand under the mode they belong to, and those that have a row of the form.
MODE_FIELDS: Final = tuple(spec.name for spec in FIELDS if spec.group == _MODE)
ROWS: Final = {spec.name: spec for spec in FIELDS if spec.group not in ("", _MODE)}
# Rows that mean something in these modes only.
OF_MODE: Final = {name: spec.modes for name, spec in ROWS.items() if spec.modes}


def form_fields(recipe: Recipe) -> tuple[FieldSpec, ...]:
    """The rows of the form: the common settings of every run, then the recipe's own.

    A recipe that runs a program has its own first, and only the common ones that it uses.
    """
    common = tuple(spec for name, spec in ROWS.items() if recipe.uses_model or name != "model")
    if recipe.self_contained:
        return (*recipe.fields, *(spec for spec in common if not recipe.uses or spec.name in recipe.uses))
    return (*common, *recipe.fields)


def grouped_fields(recipe: Recipe) -> dict[str, list[FieldSpec]]:
    """The rows by their heading, in the order shown; in each group the recipe's own last.

    What a recipe marks as common is in sight. Its fields without a heading stand under the recipe's title.
    """
    own = {spec.name for spec in recipe.fields}
    others = [spec.group for spec in recipe.fields if spec.group not in _HEADINGS]
    order = [name for title in _HEADINGS for name in ((recipe.title, *others) if title == _OF_RECIPE else (title,))]
    groups: dict[str, list[FieldSpec]] = {title: [] for title in order}
    for spec in sorted(form_fields(recipe), key=lambda spec: spec.name in own):
        is_common = spec.name in own and spec.common and spec.group not in IN_SIGHT
        groups.setdefault(HOW if is_common else spec.group or recipe.title, []).append(spec)
    return {title: specs for title, specs in groups.items() if specs}


def default_texts(recipe: Recipe, texts: Mapping[str, str] | None = None) -> dict[str, str]:
    """The recipe's defaults, which may depend on the form's `texts`, by field."""
    defaults = recipe_defaults(recipe, (), texts)
    own = {spec.name for spec in recipe.fields}
    values = {
        spec.name: (defaults["options"] if spec.name in own else defaults).get(spec.name, spec.default)
        for spec in form_fields(recipe)
    }
    return {spec.name: text_of(spec, values[spec.name]) for spec in form_fields(recipe)}


def default_mode_texts() -> dict[str, str]:
    return {name: text_of(FIELD_BY_NAME[name], FIELD_BY_NAME[name].default) for name in MODE_FIELDS}


def fields_without_effect(recipe: Recipe, texts: Mapping[str, str]) -> dict[str, str]:
    """Reasons why fields of a recipe have no effect beside the values of others, by field."""
    defaults = default_texts(recipe)
    held = {name: texts.get(name, "").strip() or default for name, default in defaults.items()}
    labels = {spec.name: spec.label for spec in form_fields(recipe)}
    return {
        spec.name: spec.instead or f"It has no effect with this value of {labels.get(spec.when[0], spec.when[0])}."
        for spec in recipe.fields
        if not spec.matters(held)
    }


def is_given(spec: FieldSpec, text: str, default: str) -> bool:
    """Whether a text is a value: an empty field has its default, except text that may be empty on purpose."""
    return bool(text.strip()) or (spec.type == "str" and bool(default))


def fields_of_mode(mode: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Which of `MODE_FIELDS` mean something in a mode; "auto" may become independent."""
    shown = Mode.INDEPENDENT if mode == Mode.AUTO else Mode.read(mode)
    return tuple(name for name in MODE_FIELDS if _matters(FIELD_BY_NAME[name], shown, texts))


def _matters(spec: FieldSpec, mode: Mode, texts: Mapping[str, str]) -> bool:
    """Whether a field matters in a mode, given the mode's other fields."""
    of_mode = {name: text for name, text in texts.items() if mode in FIELD_BY_NAME[name].modes}
    return mode in spec.modes and spec.matters(of_mode)


def settings_without_meaning(mode: str, texts: Mapping[str, str], ranks: int) -> frozenset[str]:
    """Rows of the form that are left out, and stay at their defaults; mode "auto" may become any."""
    if ranks == 1:
        return frozenset(OF_MODE)
    if mode == Mode.AUTO:
        return frozenset()
    return frozenset(name for name in OF_MODE if not _matters(FIELD_BY_NAME[name], Mode.read(mode), texts))


def text_of(spec: FieldSpec, value: FieldValue) -> str:
    return "" if value is None else spec.text(value)


def given_text(spec: FieldSpec, value: FieldValue) -> str:
    """The text of a value; "none" where an empty field would have another value."""
    return "none" if value is None and spec.default is not None and spec.optional else text_of(spec, value)


def plain_text(value: FieldValue) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
