"""TensorBoard's event files, written by hand: scalars and texts, nothing else.

A file is a row of TFRecords (https://www.tensorflow.org/tutorials/load_data/tfrecord): length, its checksum, the
bytes, theirs. Each holds an `Event` message of tensorboard/compat/proto/event.proto in protobuf's wire format
(https://protobuf.dev/programming-guides/encoding). Checksums are CRC-32C (RFC 3720, B.4), masked.
Why no library: docs/decisions/0018-event-files-by-hand.md.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from typing import IO, Final

VERSION: Final = b"brain.Event:2"
_MASK_DELTA: Final = 0xA282EAD8
_START: Final = 1
_DT_STRING: Final = 7


def _after_byte(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


@functools.cache
def _table() -> tuple[int, ...]:
    """What two bytes at once do to the checksum: 65,536 numbers, twice as fast as one byte at a time."""
    one = [_after_byte(byte) for byte in range(256)]
    return tuple(one[one[pair & 0xFF] & 0xFF ^ pair >> 8] ^ one[pair & 0xFF] >> 8 for pair in range(1 << 16))


class EventFile:
    """Events of one curve's owner, in the order in which they are given.

    Args:
        file: Gets the bytes.
        started: Unix seconds.
    """

    def __init__(self, file: IO[bytes], started: float) -> None:
        self._file = file
        self._event(started, 0, _bytes(3, VERSION))

    def scalars(self, ts: float, step: int, values: Mapping[str, float]) -> None:
        """Numbers of one step, by their names."""
        summary = b"".join(
            _bytes(1, _scalar_head(name) + struct.pack("<f", _as_float32(value))) for name, value in values.items()
        )
        self._event(ts, step, _bytes(5, summary))

    def text(self, ts: float, step: int, name: str, text: str) -> None:
        """A text of one step, for the tab Text (which reads it as Markdown)."""
        shape = _bytes(2, _number(1, 1))
        tensor = _number(1, _DT_STRING) + _bytes(2, shape) + _bytes(8, text.encode("utf-8", "replace"))
        metadata = _bytes(1, _bytes(1, b"text"))
        value = _bytes(1, name.encode("utf-8", "replace")) + _bytes(8, tensor) + _bytes(9, metadata)
        self._event(ts, step, _bytes(5, _bytes(1, value)))

    def restart(self, ts: float, step: int) -> None:
        """From here on steps are made again: readers drop what they have from `step` on."""
        self._event(ts, step, _bytes(7, _number(1, _START)))

    def _event(self, ts: float, step: int, what: bytes) -> None:
        data = b"\x09" + struct.pack("<d", ts) + _number(2, step) + what
        length = struct.pack("<Q", len(data))
        self._file.write(length + _checksum(length) + data + _checksum(data))


@functools.lru_cache(maxsize=4096)
def _scalar_head(name: str) -> bytes:
    return _bytes(1, name.encode("utf-8", "replace")) + b"\x15"


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli) of some bytes."""
    table, crc = _table(), 0xFFFFFFFF
    for pair in struct.unpack_from(f"<{len(data) // 2}H", data):
        crc = table[(crc ^ pair) & 0xFFFF] ^ crc >> 16
    if len(data) % 2:
        crc = _after_byte((crc ^ data[-1]) & 0xFF) ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)


def _as_float32(value: float) -> float:
    """What a float of 32 bits can hold: larger numbers become infinite instead of failing."""
    limit = 3.4028234663852886e38
    return value if -limit <= value <= limit or value != value else float("inf") if value > 0 else float("-inf")


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value & 0xFFFFFFFFFFFFFFFF)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
