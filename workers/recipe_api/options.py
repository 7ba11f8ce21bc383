"""Typed options: a recipe's fields as an object of its class `Options`. Needs neither torch nor NumPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from core.errors import ConfigError

__all__ = ["read_options"]

T = TypeVar("T")


class HasOptions(Protocol):
    @property
    def options(self) -> Mapping[str, Any]:
        """The recipe's fields by name."""


def read_options(source: HasOptions, declared: type[T]) -> T:
    """The recipe's options as an object of its own dataclass, so that editors and type checkers know them.

    Args:
        source: What a function of the recipe got: `run`, `request`, `given` or `data`.
        declared: A dataclass with an annotated attribute for each field that is read: `int`, `float`, `bool`, `str`
            or `Literal`, with `| None` if the field is optional. Its defaults are not used: those of `recipe.toml` are.

    Raises:
        ConfigError: A declared option has no value, or one of another type.
        TypeError: `declared` is not a dataclass.
    """
    annotations = get_type_hints(declared)
    names = [field.name for field in dataclasses.fields(declared)]  # type: ignore[arg-type]
    values = {name: source.options.get(name) for name in names}
    for name, value in values.items():
        if not _fits(value, annotations[name]):
            raise _refused(declared, name, value, annotations[name])
    return declared(**values)


def _fits(value: object, annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    types = get_args(annotation) or (annotation,)
    if get_origin(annotation) is not None:
        return any(_fits(value, one) for one in types)
    if isinstance(value, bool) and annotation is not bool:
        return False  # True is an int
    return isinstance(value, (int, float) if annotation is float else annotation)


def _refused(declared: type, name: str, value: object, annotation: Any) -> ConfigError:
    where = f"{declared.__qualname__}.{name} in {declared.__module__}"
    if value is None:
        cause = f"The recipe reads the option {name!r} ({where}), but this run has no value for it."
        step = f"Declare {name!r} in recipe.toml, then start a new run."
    else:
        wanted = annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
        cause = f"The option {name!r} is {value!r}, but the recipe declares it as {wanted} ({where})."
        step = "Give it the same type in recipe.toml and in the class."
    return ConfigError(name, cause, step, title="Recipe options do not match")
