"""TensorBoard's event files: read back by a reader of the test's own, and by the real package where it is installed."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.export.event_file import EventFile, crc32c
from core.export.tensorboard import write_event_files
from tests.unit.core.export.test_tables import silent, write_lines

pytestmark = pytest.mark.windows

LINES: list[Any] = [
    {"event": "launch", "rank": -1, "ts": 100.0, "resumed_from": None},
    {"event": "step", "rank": 0, "step": 1, "ts": 101.0, "loss": 2.5, "tokens_per_s": 1e39},
    {"event": "step", "rank": 0, "step": 2, "ts": 102.0, "loss": 2.0},
    {"event": "step", "rank": 0, "step": 3, "ts": 103.0, "loss": 9.0},
    {"event": "step", "rank": 1, "step": 1, "ts": 101.0, "loss": None, "nonfinite": ["loss"]},
    {"event": "launch", "rank": -1, "ts": 104.0, "attempt": 2, "resumed_from": {"0": 2, "1": 1}},
    {"event": "step", "rank": 0, "step": 3, "ts": 105.0, "loss": 1.5, "attempt": 2},
    {"event": "eval", "rank": 0, "step": 3, "ts": 106.0, "val_loss": 1.75},
    {"event": "sample", "rank": 0, "step": 3, "ts": 106.0, "prompt": "say ", "text": "hé\nllo"},
    {"event": "device", "rank": -1, "uuid": "GPU-1/2", "ts": 107.9, "power_w": 300.5, "throttle_reasons": []},
    {"event": "step", "rank": 0, "step": "four", "loss": 1.0},
    {"event": "step", "rank": 0, "step": -1, "loss": 1.0},
]


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


def events(folder: Path) -> list[dict[int, list[Any]]]:
    (path,) = folder.iterdir()
    assert path.name.startswith("events.out.tfevents.")
    return [fields(record) for record in records(path.read_bytes())]


def scalars(event: dict[int, list[Any]]) -> dict[str, float]:
    values = [fields(value) for value in fields(event[5][0])[1]] if 5 in event else []
    return {value[1][0].decode(): value[2][0] for value in values if 2 in value}


def test_checksums_are_castagnolis() -> None:
    # The vectors of RFC 3720, B.4, and the usual check value.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_each_rank_and_device_is_a_folder_of_events(tmp_path: Path) -> None:
    made = write_event_files(write_lines(tmp_path / "metrics.jsonl", LINES), tmp_path / "out", silent)
    assert made == {"rank0": 6, "rank1": 1, "device-GPU-1-2": 1}
    first, *rest = events(tmp_path / "out" / "rank0")
    assert first[3] == [b"brain.Event:2"] and first[1] == [100.0]
    shown = [(event[1][0], event[2][0], scalars(event)) for event in rest]
    assert shown[0] == (101.0, 1, {"loss": 2.5, "tokens_per_s": math.inf})
    assert [fields(event[7][0]) for event in rest if 7 in event] == [{1: [1]}]
    assert shown[3][1:] == (3, {}) and 7 in rest[3], "steps are made again from 3 on"
    assert shown[4:6] == [(105.0, 3, {"loss": 1.5}), (106.0, 3, {"val_loss": 1.75})]
    text = fields(fields(rest[6][5][0])[1][0])
    assert text[1] == [b"sample"] and fields(text[8][0])[8] == ["    say hé\n    llo".encode()]
    assert fields(fields(text[9][0])[1][0])[1] == [b"text"]
    assert math.isnan(scalars(events(tmp_path / "out" / "rank1")[1])["loss"])
    device = events(tmp_path / "out" / "device-GPU-1-2")[1]
    assert device[2] == [7] and scalars(device) == {"power_w": pytest.approx(300.5)}


def test_large_steps_and_names() -> None:
    file = io.BytesIO()
    EventFile(file, 0.0).scalars(1.0, 2**40, {"größe" * 40: -1e-3})
    event = fields(list(records(file.getvalue()))[1])
    assert event[2] == [2**40] and scalars(event) == {"größe" * 40: pytest.approx(-1e-3)}


def test_the_real_tensorboard_reads_it(tmp_path: Path) -> None:
    module = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="tensorboard is not installed; the reader above holds the same files to the format",
    )
    write_event_files(write_lines(tmp_path / "metrics.jsonl", LINES), tmp_path / "out", silent)
    rank = module.EventAccumulator(str(tmp_path / "out" / "rank0"))
    rank.Reload()
    assert [(event.step, event.value) for event in rank.Scalars("loss")] == [(1, 2.5), (2, 2.0), (3, 1.5)]
    assert [(event.step, event.value) for event in rank.Scalars("val_loss")] == [(3, 1.75)]
    (text,) = rank.Tensors("sample")
    assert text.tensor_proto.string_val[0].decode() == "    say hé\n    llo"
    assert rank.SummaryMetadata("sample").plugin_data.plugin_name == "text"
