"""Environments beside each other."""

from __future__ import annotations

import json
from pathlib import Path

from core.compare.settings import environment_rows, read_environment
from core.formatting import UNKNOWN
from core.run_folder.store import RunStore


def test_versions_and_device_names_stand_beside_each_other(tmp_path: Path) -> None:
    cards = [{"name": "RTX 4090"}, {"name": "RTX 4090"}, {"name": "CPU"}]
    (tmp_path / "environment.json").write_text(json.dumps({"torch": "2.13.0", "devices": cards}), encoding="utf-8")
    rows = {row.name: row for row in environment_rows([read_environment(RunStore(tmp_path)), {"torch": "2.11.0"}])}
    assert list(rows) == ["torch", "devices"]  # a driver is known of none
    assert rows["torch"].texts == ("2.13.0", "2.11.0")
    assert rows["devices"].texts == ("2 × RTX 4090, CPU", UNKNOWN)


def test_a_damaged_file_is_as_none(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text("[1", encoding="utf-8")
    assert read_environment(RunStore(tmp_path)) == {}
    (tmp_path / "environment.json").write_text("[1]", encoding="utf-8")
    assert read_environment(RunStore(tmp_path)) == {}
    assert environment_rows([{"devices": ["x", {"index": 1}], "python": None}, {}])[0].texts == ("None", UNKNOWN)
