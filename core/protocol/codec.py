"""Codec of the protocol between a run's host, its ranks and its clients: one JSON line a message.

Standard library only, because it also runs in a rank's environment. Two kinds of line travel from a rank to its host:
a **message** has a ``type`` key (`core.protocol.messages`); a **metrics line** has an ``event`` key instead, and is
written to ``metrics.jsonl`` byte for byte, so a rank writes it whole (``ts``, ``event``, ``rank``, ``attempt``).

To clients the host never sends metrics: the file is the stream, and `Appended` says how far it is safe to read. So a
client that leaves and comes back can neither miss a line nor see one twice.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

from core.errors import ProtocolError
from core.parsing import ParseError, parse_json
from core.protocol.messages import MESSAGE_TYPES, Message
from core.records import RecordError, read_record

MAX_LINE_BYTES: Final = 1 << 20
HELLO_TIMEOUT_S: Final = 5.0


_NAMES: Final = {cls: name for name, cls in MESSAGE_TYPES.items()}


def encode(message: Message) -> bytes:
    """Encode a message as one line of UTF-8 JSON, newline included; raises `ProtocolError`."""
    name = _NAMES[type(message)]
    line = json.dumps({"type": name, **dataclasses.asdict(message)}, ensure_ascii=False, separators=(",", ":"))
    data = line.encode("utf-8", errors="surrogatepass") + b"\n"
    if len(data) > MAX_LINE_BYTES:
        raise ProtocolError(f"A {name} message of {len(data)} bytes is over the limit of {MAX_LINE_BYTES}.")
    return data


def decode(line: bytes) -> Message | dict[str, Any]:
    """Decode a message, or a metrics line as the dict it is.

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
    try:
        return read_record(cls, value, strict=True)
    except RecordError as error:
        raise ProtocolError(f"{name}: {error}.") from None
