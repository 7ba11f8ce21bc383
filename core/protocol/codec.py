"""Codec of the protocol between a run's host, its ranks and its clients: one JSON line a message.

This module needs the standard library only, because it also runs in a rank's environment.

Two kinds of line travel from a rank to its host:

* a **message** has a ``type`` key and is one of `core.protocol.messages`;
* a **metrics line** has an ``event`` key instead. It is written to ``metrics.jsonl`` byte for byte as it
  came, so a rank writes it whole (``ts``, ``event``, ``rank``, ``attempt``).

To clients the host never sends metrics: the file is the stream, and `Appended` says how far it is safe to
read it. So a client that leaves and comes back can neither miss a line nor see one twice.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable
from typing import Any, Final, Literal

from core.errors import ProtocolError
from core.parsing import ParseError, parse_json
from core.protocol.messages import MESSAGE_TYPES, Message

MAX_LINE_BYTES: Final = 1 << 20
HELLO_TIMEOUT_S: Final = 5.0


def encode(message: Message) -> bytes:
    """One line of UTF-8 JSON, newline included.

    Raises:
        ProtocolError: The line is longer than `MAX_LINE_BYTES`.
    """
    name = next(name for name, cls in MESSAGE_TYPES.items() if cls is type(message))
    line = json.dumps({"type": name, **dataclasses.asdict(message)}, ensure_ascii=False, separators=(",", ":"))
    data = line.encode("utf-8", errors="surrogatepass") + b"\n"
    if len(data) > MAX_LINE_BYTES:
        raise ProtocolError(f"A {name} message of {len(data)} bytes is over the limit of {MAX_LINE_BYTES}.")
    return data


def decode(line: bytes) -> Message | dict[str, Any]:
    """A message, or a metrics line as the dict it is.

    Raises:
        ProtocolError: Not UTF-8 JSON, not an object, no known type, a field missing, unknown or of the wrong type.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ProtocolError(f"A line of {len(line)} bytes is over the limit of {MAX_LINE_BYTES}.")
    try:
        value = parse_json(line)
    except ParseError as error:
        raise ProtocolError(f"A line is not JSON ({error}).") from None
    if not isinstance(value, dict):
        raise ProtocolError("A line is JSON but not an object.")
    if "type" not in value:
        if isinstance(value.get("event"), str):
            return value
        raise ProtocolError("A line has neither a type nor an event.")
    name = value.pop("type")
    cls = MESSAGE_TYPES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ProtocolError(f"There is no message type {name!r}.")
    return typing.cast(Message, _build(cls, value, str(name)))


@functools.cache
def _field_types(cls: Callable[..., object]) -> dict[str, Any]:
    """A class's annotations as types: they are strings, and to evaluate them takes longer than to read a line."""
    return typing.get_type_hints(cls)


def _build(cls: Callable[..., object], value: dict[str, Any], where: str) -> object:
    hints = _field_types(cls)
    unknown = value.keys() - hints.keys()
    if unknown:
        raise ProtocolError(f"{where} has no field {sorted(unknown)[0]!r}.")
    try:
        return cls(**{key: _typed(hints[key], item, f"{where}.{key}") for key, item in value.items()})
    except TypeError:
        raise ProtocolError(f"{where} lacks a field.") from None


def _typed(hint: Any, value: Any, where: str) -> Any:
    """`value` as the annotation `hint` wants it; bools are no ints, ints are floats."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        return _build(hint, value, where)
    if origin is Literal and value in arguments:
        return value
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        return _typed(next(a for a in arguments if a is not type(None)), value, where)
    if origin is list and isinstance(value, list):
        return [_typed(arguments[0], item, where) for item in value]
    if origin is dict and isinstance(value, dict):
        return {key: _typed(arguments[1], item, where) for key, item in value.items()}
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    raise ProtocolError(f"{where} has a value of the wrong type ({type(value).__name__}).")
