"""A run as a folder that TensorBoard opens: a curve's owner (a rank, a device) is one of its "runs".

Steps and evaluations keep their step. Devices have none: theirs is whole seconds since the run's first line. Where a
resumed attempt trains steps again, what was there before is marked as replaced, so the curve shown is the one that
led to the weights.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

from core.export.lines import Line, MetricsLines, Progress

_NO_CURVE: Final = frozenset(("ts", "event", "rank", "attempt", "step", "nonfinite", "index"))
# Files open at once; a machine has some dozens of ranks and devices, Windows' C library allows 512.
_MAX_OWNERS: Final = 400
VERSION: Final = b"brain.Event:2"
_MASK_DELTA: Final = 0xA282EAD8
_START: Final = 1
_DT_STRING: Final = 7


def write_event_files(lines: MetricsLines, folder: Path, progress: Progress) -> dict[str, int]:
    """Fills an existing folder with a subfolder and an event file for each rank and device.

    Returns:
        Events by the subfolder's name.

    Raises:
        As `core.export.export.write_tables`.
    """
    with ExitStack() as stack:
        writer = _Writer(folder, stack)
        for line in lines.read(progress):
            writer.take(line)
    return writer.events


class _Writer:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._files: dict[str, EventFile] = {}
        self._started: float | None = None
        self.events: dict[str, int] = {}

    def take(self, line: Line) -> None:
        ts = _float(line.get("ts")) or 0.0
        if self._started is None:
            self._started = ts
        kind, step, rank = line["event"], line.get("step"), line.get("rank", 0)
        if kind in ("launch", "resumed") and isinstance(line.get("resumed_from"), dict):
            self._restart(ts, line["resumed_from"])
        elif kind == "device":
            owner = f"device-{line.get('uuid') or 'host'}"
            self._scalars(owner, ts, max(0, int(ts - self._started)), line)
        elif not isinstance(step, int) or isinstance(step, bool) or step < 0:
            return
        elif kind in ("step", "eval"):
            self._scalars(f"rank{rank}", ts, step, line)
        elif kind == "sample":
            text = f"{line.get('prompt') or ''}{line.get('text') or ''}"
            if file := self._file(f"rank{rank}"):
                indented = "\n".join(f"    {part}" for part in text.split("\n"))
                file.text(ts, step, "sample", indented)  # four spaces: Markdown leaves it as it is

    def _restart(self, ts: float, resumed_from: dict[str, Any]) -> None:
        for rank, step in resumed_from.items():
            if isinstance(step, int) and f"rank{rank}" in self._files:
                self._files[f"rank{rank}"].restart(ts, step + 1)

    def _scalars(self, owner: str, ts: float, step: int, line: Line) -> None:
        values = {name: value for name in line if name not in _NO_CURVE and (value := _float(line[name])) is not None}
        values |= dict.fromkeys((str(name) for name in line.get("nonfinite") or ()), float("nan"))
        if values and (file := self._file(owner)):
            file.scalars(ts, step, values)

    def _file(self, owner: str) -> EventFile | None:
        """The owner's file, opened when it is needed first; None beyond `_MAX_OWNERS`."""
        name = re.sub(r"[^\w.-]+", "-", owner, flags=re.ASCII)[:80].rstrip(".")
        if name not in self._files:
            if len(self._files) >= _MAX_OWNERS:
                return None
            path = self._folder / name / f"events.out.tfevents.{int(self._started or 0):010d}.rankdeck"
            path.parent.mkdir(parents=True)
            self._files[name] = EventFile(self._stack.enter_context(path.open("wb")), self._started or 0.0)
            self.events[name] = 0
        self.events[name] += 1
        return self._files[name]


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


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
    """Events of one curve's owner, in the order in which they are given, written without a library.

    A file is a row of TFRecords (https://www.tensorflow.org/tutorials/load_data/tfrecord): length, its checksum, the
    bytes, theirs. Each holds an `Event` message of tensorboard/compat/proto/event.proto in protobuf's wire format.
    Checksums are CRC-32C (RFC 3720, B.4), masked. Why by hand: docs/decisions/0018-event-files-by-hand.md.

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
