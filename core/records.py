"""Records: dataclasses made of JSON values that anyone may have written, each value checked by its field's annotation.

A bool is not a number, a whole number is a float where one is due, and an error names the place of the value:
"completed_chunks[3].block_id is -1; it must be a whole number of 0 or more".

Standard library only, because `core.protocol.codec` runs in a rank's environment.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from core.parsing import type_text

LARGEST: Final = 2**63 - 1
_NUMBERS: Final = (int, float)
# What JSON has for a type, and what an error calls it.
_SCALARS: Final[dict[Any, tuple[Any, str]]] = {
    int: (int, "a whole number"),
    float: (_NUMBERS, "a number"),
    str: (str, "text"),
    bool: (bool, "true or false"),
    Path: (str, "text"),
}

T = TypeVar("T")
Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """The least and the largest number, or length of a text or list; stands in an annotation.

    A number within limits is finite. A text within limits can be written as UTF-8: JSON's \\ud800 alone cannot.
    """

    least: float
    largest: float = LARGEST

    def allow(self, value: Any) -> bool:
        if isinstance(value, str):
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                return False
        return self.least <= (value if isinstance(value, _NUMBERS) else len(value)) <= self.largest

    def __str__(self) -> str:
        if self.largest == LARGEST:
            return f"of {self.least:g} or more"
        return f"from {self.least:g} to {self.largest:.15g}"


Whole = Annotated[int, Limits(0)]
Finite = Annotated[float, Limits(-sys.float_info.max, sys.float_info.max)]
Text = Annotated[str, Limits(0)]


class RecordError(ValueError):
    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place or 'it'} {problem}")
        self.problem = problem
        self.place = place

    def inside(self, outer: str) -> RecordError:
        joint = "." if self.place and not self.place.startswith("[") else ""
        return RecordError(self.problem, f"{outer}{joint}{self.place}")


def read_record(cls: type[T], value: object, *, strict: bool = False) -> T:
    """Make a dataclass of a parsed JSON object; raises `RecordError`. `strict` refuses keys that are no fields.

    A field is read from the key of its name, or from ``field(metadata={"key": …})``. Its annotation may be made of
    int, float, bool, str, `Path`, lists, tuples of one type, dicts with text or whole numbers as keys, literals,
    dataclasses, ``| None``, `Any`, and any of these ``Annotated`` with `Limits`.
    """
    return typing.cast(T, _reader(typing.cast(Any, cls), strict)(value))


@functools.cache
def _reader(hint: Any, strict: bool) -> Reader:
    """Make a reader of a type; annotations are strings, and evaluating them takes longer than reading a line."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value: value
    if hint in _SCALARS:
        return functools.partial(_read_scalar, hint, *_SCALARS[hint])
    if dataclasses.is_dataclass(hint):
        return _record_reader(typing.cast(type[Any], hint), strict)
    if origin is Literal:
        return functools.partial(_read_literal, arguments)
    inner = _reader(arguments[1 if origin is dict else 0], strict)
    if origin is Annotated:
        wanted = _SCALARS[arguments[0]][1] if arguments[0] in _SCALARS else "a list"
        return functools.partial(_read_limited, inner, arguments[1], wanted)
    if origin in (types.UnionType, typing.Union):
        return lambda value: None if value is None else inner(value)
    if origin is dict:
        return functools.partial(
            _read_dict, _read_number_key if arguments[0] is int else _reader(arguments[0], strict), inner
        )
    assert origin in (list, tuple), hint
    return functools.partial(_read_items, origin, inner)


def _record_reader(cls: type[Any], strict: bool) -> Reader:
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {}
    for field in dataclasses.fields(cls):
        optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        fields[field.metadata.get("key", field.name)] = field.name, _reader(hints[field.name], strict), optional

    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _wrong(value, "an object")
        if strict and value.keys() - fields.keys():
            raise RecordError("is not known", sorted(value.keys() - fields.keys())[0])
        found = {}
        for key, (name, reader, optional) in fields.items():
            if key in value:
                try:
                    found[name] = reader(value[key])
                except RecordError as error:
                    raise error.inside(key) from None
            elif not optional:
                raise RecordError("is missing", key)
        return cls(**found)

    return read


def _read_scalar(kind: type, allowed: Any, wanted: str, value: Any) -> Any:
    if isinstance(value, allowed) and (kind is bool or (value is not True and value is not False)):
        return kind(value)
    raise _wrong(value, wanted)


def _read_literal(choices: tuple[Any, ...], value: Any) -> Any:
    if value in choices:
        return value
    raise _wrong(value, " or ".join(map(str, choices)))


def _read_limited(reader: Reader, limits: Limits, wanted: str, value: Any) -> Any:
    made = reader(value)
    if limits.allow(made):
        return made
    raise _wrong(value, f"{wanted} {limits}")


def _read_items(kind: type, reader: Reader, value: Any) -> Any:
    if not isinstance(value, list):
        raise _wrong(value, "a list")
    made = []
    for number, item in enumerate(value):
        try:
            made.append(reader(item))
        except RecordError as error:
            raise error.inside(f"[{number}]") from None
    return kind(made)


def _read_dict(read_key: Reader, reader: Reader, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(value, "an object")
    made = {}
    for key, item in value.items():
        try:
            made[read_key(key)] = reader(item)
        except RecordError as error:
            raise error.inside(str(key)) from None
    return made


def _read_number_key(key: str) -> int:
    if not key.isdecimal():
        raise RecordError("is not a whole number")
    return int(key)


def _wrong(value: object, wanted: str) -> RecordError:
    found = f"holds {type_text(value)}"
    if isinstance(value, _NUMBERS) and not isinstance(value, bool):
        found = f"is {value:.6g}" if abs(value) > LARGEST else f"is {value}"
    return RecordError(f"{found}; it must be {wanted}")
