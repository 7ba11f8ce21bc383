"""Plain values in a checkpoint's files, whatever those files hold."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.state_header import MAX_HEAD_BYTES, VALUES_KEY, read_values


def head(values: Any) -> bytes:
    text = json.dumps(values).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (head({"__metadata__": {VALUES_KEY: '{"step": 3, "größe": null}'}}) + b"tensors", {"step": 3, "größe": None}),
        (head({"__metadata__": {VALUES_KEY: "[1]"}}), {}),
        (head({"__metadata__": {VALUES_KEY: "{"}}), {}),
        (head({"__metadata__": {VALUES_KEY: 5}}), {}),
        (head({"__metadata__": {"format": "pt"}}), {}),
        (head({"__metadata__": None}), {}),
        (head({"weight": {}}), {}),
        (head([]), {}),
        (struct.pack("<Q", MAX_HEAD_BYTES + 1) + head({"__metadata__": {VALUES_KEY: '{"step": 3}'}})[8:], {}),
        (b"\x80\x02pickle", {}),
        (b"", {}),
    ],
)
def test_values_are_read_or_there_are_none(tmp_path: Path, content: bytes, values: dict[str, Any]) -> None:
    path = tmp_path / "rank0.safetensors"
    path.write_bytes(content)
    assert read_values(path) == values


def test_a_missing_file_has_none(tmp_path: Path) -> None:
    assert read_values(tmp_path / "rank0.safetensors") == {}
