"""Every message comes out as it went in, and nothing else is taken for one."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, Literal

import pytest

from core.errors import ProtocolError
from core.protocol import messages
from core.protocol.codec import MAX_LINE_BYTES, decode, encode
from core.protocol.messages import MESSAGE_TYPES, Message, Phase

pytestmark = pytest.mark.windows


def some_value(hint: Any) -> Any:
    """A value that such a field may have, and that JSON could spoil."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return filled(hint)
    if origin is Literal:
        return arguments[-1]
    if origin in (types.UnionType, typing.Union):
        return some_value(next(argument for argument in arguments if argument is not type(None)))
    if origin is list:
        return [some_value(arguments[0]), some_value(arguments[0])]
    if origin is dict:
        return {"Größe \n": some_value(arguments[1])}
    examples: dict[Any, Any] = {int: 2**53 + 1, float: 0.1, bool: True, str: 'a "quoted"\n日本\t', Any: {"any": [1]}}
    return examples[hint]


def filled(cls: type[Any]) -> Any:
    """One with every field set."""
    return cls(**{name: some_value(hint) for name, hint in typing.get_type_hints(cls).items()})


@pytest.mark.parametrize("name", MESSAGE_TYPES)
def test_a_message_comes_out_as_it_went_in(name: str) -> None:
    message = filled(MESSAGE_TYPES[name])
    line = encode(message)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert json.loads(line)["type"] == name
    assert decode(line) == message


def test_every_message_has_a_name() -> None:
    written = {cls for cls in vars(messages).values() if isinstance(cls, type) and issubclass(cls, Message)}
    assert written - {Message} == set(MESSAGE_TYPES.values())


def test_a_metrics_line_stays_what_it_is() -> None:
    assert decode(b'{"event": "step", "loss": 2.5}\n') == {"event": "step", "loss": 2.5}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"\xff\xfe\n", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]\n", "not an object"),
        (b"{}\n", "neither a type nor an event"),
        (b'{"event": 3}\n', "neither a type nor an event"),
        (b'{"type": "no such"}\n', "no message type 'no such'"),
        (b'{"type": ["hello"]}\n', "no message type"),
        (b'{"type": "hello", "role": "rank"}\n', "hello: token is missing"),
        (b'{"type": "hello", "role": "rank", "token": "t", "more": 1}\n', "hello: more is not known"),
        (b'"' + b"x" * MAX_LINE_BYTES + b'"', "over the limit"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_anything_else_is_refused(line: bytes, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        decode(line)


def test_a_message_that_nobody_would_read_is_not_sent() -> None:
    with pytest.raises(ProtocolError, match="over the limit"):
        encode(Phase("x" * MAX_LINE_BYTES))
