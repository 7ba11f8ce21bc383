"""Reads a recipe's own fields, the `[[fields]]` of its `recipe.toml`."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from core.config.fields import FieldSpec, FieldType, Picks
from core.config.run_config import FIELD_BY_NAME
from core.errors import ConfigError, sentences
from core.held_files import read_all
from core.parsing import ParseError, decode_utf8

_OPTION: Final = re.compile(r"[a-z][a-z0-9_]*")
_TYPES: Final = tuple(kind for kind in get_args(FieldType) if kind != "variables")
_PICKS: Final = tuple(get_args(Picks))
_KINDS: Final = {
    "label": str,
    "help": str,
    "unit": str,
    "common": bool,
    "group": str,
    "optional": bool,
    "patterns": str,
    "instead": str,
    "empty": str,
}
_SPEC_KEYS: Final = tuple(f.name for f in dataclasses.fields(FieldSpec) if f.name not in ("changes", "effect", "names"))
CLASS: Final = "Options"
_PYTHON_TYPES: Final[Mapping[FieldType, str]] = {
    "int": "int", "float": "float", "bool": "bool", "str": "str", "choice": "str", "path": "str",
}  # fmt: skip


class ManifestError(Exception):
    """An invalid `recipe.toml`; its text becomes `Recipe.problem`."""


def read_fields(tables: object) -> tuple[FieldSpec, ...]:
    """The fields of these tables; raises `ManifestError`."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ManifestError("fields must be a list of [[fields]] tables.")
    specs = tuple(_spec(number, table) for number, table in enumerate(tables, 1))
    names = [spec.name for spec in specs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ManifestError(f"Two fields have the name {twice!r}.")
    return specs


def _spec(number: int, table: Mapping[str, Any]) -> FieldSpec:
    name = table.get("name")
    if not isinstance(name, str) or not _OPTION.fullmatch(name):
        raise ManifestError(f"Field {number} has the name {name!r}; it must be small letters, digits and _.")
    if name in FIELD_BY_NAME:
        raise ManifestError(f"The field {name!r} is a common one of every run; set it under [defaults] instead.")
    where = f"field {name!r}"
    known_keys(where, table, _SPEC_KEYS)
    if table.get("type") not in _TYPES:
        raise ManifestError(f"{where}: type is {table.get('type')!r}; it must be one of {', '.join(_TYPES)}.")
    if table.get("picks", "name") not in _PICKS:
        raise ManifestError(f"{where}: picks is {table['picks']!r}; it must be one of {', '.join(_PICKS)}.")
    for key, kind in _KINDS.items():
        if key in table and not isinstance(table[key], kind):
            raise ManifestError(
                f"{where}: {key} is {table[key]!r}; it must be {'text' if kind is str else 'true or false'}."
            )
    _limits(where, table)
    when = table.get("when", ["", ""])
    if not isinstance(when, list) or len(when) != 2 or not all(isinstance(text, str) for text in when):
        raise ManifestError(f"{where}: when is {when!r}; it must be a field's name and what that must hold.")
    spec = FieldSpec(**{"label": name, **table, "choices": tuple(table.get("choices", ())), "when": tuple(when)})
    try:
        default = "" if spec.type == "str" and spec.default == "" else spec.check(spec.default)
    except ConfigError as error:
        raise ManifestError(f"{where}: the default cannot be used. {sentences(error.cause, error.next_step)}") from None
    return dataclasses.replace(spec, default=default)


def _limits(where: str, table: Mapping[str, Any]) -> None:
    for key in ("minimum", "maximum"):
        if key not in table:
            continue
        if table["type"] not in ("int", "float"):
            raise ManifestError(f"{where}: only a number has a {key}.")
        if isinstance(table[key], bool) or not isinstance(table[key], int | float):
            raise ManifestError(f"{where}: {key} is {table[key]!r}; it must be a number.")
    if "minimum" in table and "maximum" in table and table["minimum"] > table["maximum"]:
        raise ManifestError(f"{where}: minimum {table['minimum']} is above maximum {table['maximum']}.")
    choices = table.get("choices", [])
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise ManifestError(f"{where}: choices must be a list of texts.")
    if bool(choices) != (table["type"] == "choice"):
        raise ManifestError(f"{where}: choices belong to type 'choice', and it needs them.")


def known_keys(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse a key that a table does not have, and name the nearest."""
    known = list(known)
    for key in table:
        if key not in known:
            raise ManifestError(f"{where} has an unknown key {key!r}. {nearest_name(key, known) or names_text(known)}")


def nearest_name(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"Did you mean {close[0]!r}?" if close else ""


def names_text(names: Iterable[str]) -> str:
    return f"Choose one of: {', '.join(names)}."


def find_difference(path: Path, specs: Sequence[FieldSpec]) -> str:
    """The first difference between a recipe's class `Options` and its fields, with its remedy; empty for none."""
    try:
        found = [node for node in ast.parse(decode_utf8(read_all(path))).body if isinstance(node, ast.ClassDef)]
    except SyntaxError as error:
        return f"{path.name} is not valid Python: {error.msg} (line {error.lineno})."
    except (OSError, ParseError, ValueError, RecursionError, MemoryError) as error:
        return f"{path.name} cannot be read ({error})."
    declared = next((node for node in found if node.name == CLASS), None)
    if declared is None or not any(_last_name(node) == "dataclass" for node in declared.decorator_list):
        return f"{path.name} has no dataclass {CLASS}. Declare it with one attribute for each field of recipe.toml."
    types = {
        node.target.id: ast.unparse(node.annotation).replace("typing.", "")
        for node in declared.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return _difference(f"{CLASS} in {path.name}", types, specs)


def _difference(where: str, types: Mapping[str, str], specs: Sequence[FieldSpec]) -> str:
    names = [spec.name for spec in specs]
    for name in types:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            step = f"Did you mean {near[0]!r}?" if near else "Add a [[fields]] table of that name, or remove it."
            return f"{where} declares {name!r}, but recipe.toml has no such field. {step}"
    for spec in specs:
        accepted = _annotations(spec)
        if spec.name not in types:
            return f"{where} does not declare the field {spec.name!r} of recipe.toml. Add: {spec.name}: {accepted[-1]}"
        if types[spec.name] not in accepted:
            return (
                f"{where} declares {spec.name!r} as {types[spec.name]}, but its type in recipe.toml is {spec.type!r}. "
                f"Write: {spec.name}: {accepted[-1]}"
            )
    return ""


def _annotations(spec: FieldSpec) -> list[str]:
    """The annotations that fit a field, the most precise last."""
    accepted = [_PYTHON_TYPES[spec.type]]
    if spec.type == "choice":
        accepted.append(f"Literal[{', '.join(map(repr, spec.choices))}]")
    return [f"{name} | None" for name in accepted] if spec.optional else accepted


def _last_name(node: ast.expr) -> str:
    """`dataclass` in ``@dataclass``, ``@dataclass(frozen=True)`` and ``@dataclasses.dataclass``."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]
