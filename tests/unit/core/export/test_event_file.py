"""One event file, read back by a reader of the test's own."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from core.export.tensorboard import VERSION, EventFile, crc32c

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")


def bitwise_crc32c(data: bytes) -> int:
    """RFC 3720's polynomial bit by bit, from its definition."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def records(data: bytes) -> Iterator[bytes]:
    """TFRecords with both checksums held against what was written."""

    def unmask(at: int) -> int:
        masked = (struct.unpack_from("<I", data, at)[0] - 0xA282EAD8) & 0xFFFFFFFF
        return (masked >> 17 | masked << 15) & 0xFFFFFFFF

    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        body = data[at + 12 : at + 12 + length]
        assert unmask(at + 8) == bitwise_crc32c(data[at : at + 8])
        assert unmask(at + 12 + length) == bitwise_crc32c(body)
        yield body
        at += 16 + length


def fields(data: bytes) -> dict[int, list[Any]]:
    """A protobuf message: its fields by number, each value as the wire has it."""

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    at, found = 0, dict[int, list[Any]]()
    while at < len(data):
        key = varint()
        value: Any
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 2:
            length = varint()
            value, at = data[at : at + length], at + length
        else:
            size, form = {1: (8, "<d"), 5: (4, "<f")}[key & 7]
            (value,), at = struct.unpack_from(form, data, at), at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def scalars(event: dict[int, list[Any]]) -> dict[str, float]:
    values = [fields(value) for value in fields(event[5][0])[1]] if 5 in event else []
    return {value[1][0].decode(): value[2][0] for value in values if 2 in value}


def test_checksums_are_castagnolis() -> None:
    # The vectors of RFC 3720, B.4, and the usual check value.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_large_steps_and_names() -> None:
    file = io.BytesIO()
    EventFile(file, 0.0).scalars(1.0, 2**40, {"größe" * 40: -1e-3})
    event = fields(list(records(file.getvalue()))[1])
    assert event[2] == [2**40] and scalars(event) == {"größe" * 40: pytest.approx(-1e-3)}


@hypothesis.given(st.binary(max_size=50))
def test_two_bytes_at_once_give_the_same_checksum(data: bytes) -> None:
    assert crc32c(data) == bitwise_crc32c(data)


def written(*calls: tuple[str, tuple[Any, ...]]) -> list[dict[int, list[Any]]]:
    """The events after the first, which names the format."""
    file = io.BytesIO()
    events = EventFile(file, 5.5)
    for method, arguments in calls:
        getattr(events, method)(*arguments)
    first, *rest = (fields(record) for record in records(file.getvalue()))
    assert (first[1], first[2], first[3]) == ([5.5], [0], [VERSION])
    return rest


def test_numbers_beyond_32_bits_become_infinite() -> None:
    limit = 3.4028234663852886e38
    values = {"high": 1e39, "low": -1e39, "limit": limit, "unknown": math.nan, "infinite": -math.inf}
    (event,) = written(("scalars", (1.0, 3, values)))
    found = scalars(event)
    assert math.isnan(found.pop("unknown"))
    assert found == {"high": math.inf, "low": -math.inf, "limit": limit, "infinite": -math.inf}


def test_a_text_and_a_restart_are_events_of_their_step() -> None:
    text, restart = written(("text", (2.0, 300, "größe", "a\ud800b")), ("restart", (3.0, 200)))
    value = fields(fields(text[5][0])[1][0])
    assert (text[1], text[2], value[1]) == ([2.0], [300], ["größe".encode()])
    tensor = fields(value[8][0])
    assert (tensor[1], tensor[8]) == ([7], [b"a?b"]), "DT_STRING, and what UTF-8 has no bytes for is a question mark"
    assert fields(fields(value[9][0])[1][0])[1] == [b"text"]
    assert (restart[1], restart[2], fields(restart[7][0])) == ([3.0], [200], {1: [1]})
