"""Compares a recipe's class `Options` with the fields in its `recipe.toml`. The file is parsed, never imported.

A recipe with ``options = "train.py"`` declares its options there once more, as Python types::

    @dataclass(frozen=True)
    class Options:
        width: int
        tokenizer: Literal["byte", "bpe"]

Why twice, and why compared: docs/decisions/0029-typed-recipe-options.md
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from core.config.fields import FieldSpec, FieldType
from core.held_files import read_all
from core.parsing import ParseError, decode_utf8

CLASS: Final = "Options"
_PYTHON_TYPES: Final[Mapping[FieldType, str]] = {
    "int": "int", "float": "float", "bool": "bool", "str": "str", "choice": "str", "path": "str",
}  # fmt: skip


def find_difference(path: Path, specs: Sequence[FieldSpec]) -> str:
    """The first difference between a recipe's class `Options` and its fields.

    Returns:
        What differs and how to correct it, as sentences; empty if both declare the same.
    """
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
