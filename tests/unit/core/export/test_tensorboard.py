"""A run as TensorBoard's event files: read back by a reader of the tests' own, and by the real package if installed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from core.export.tensorboard import write_event_files
from tests.unit.core.export.test_event_file import fields, records, scalars
from tests.unit.core.export.test_tables import silent, write_lines

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


def events(folder: Path) -> list[dict[int, list[Any]]]:
    (path,) = folder.iterdir()
    assert path.name.startswith("events.out.tfevents.")
    return [fields(record) for record in records(path.read_bytes())]


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
