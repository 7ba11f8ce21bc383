"""What lists and filters know of a run."""

from __future__ import annotations

from pathlib import Path

from core.config import RunConfig
from core.run_folder.notes import NOTES, RunNotes, write_notes
from core.run_folder.record import read_record
from core.run_folder.store import RunStore, list_runs


def test_a_record_has_state_notes_and_settings(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, RunConfig(lr=0.25, options={"n_layer": 3}), name="MiniGPT · stdlib")
    write_notes(store.dir, RunNotes(tags=("night",)))
    (entry,) = list_runs(tmp_path)
    record = read_record(entry)
    assert record.label.startswith("MiniGPT · stdlib · ")
    values = {name: record.value(name) for name in ("lr", "n_layer", "tag", "state", "devices", "id", "nothing")}
    assert values == {
        "lr": 0.25,
        "n_layer": 3,
        "tag": ("night",),
        "state": "starting",
        "devices": 1,
        "id": store.dir.name,
        "nothing": None,
    }
    assert "night" in record.searched_text and "stdlib" in record.searched_text


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, RunConfig())
    for path in (store.run_toml, store.dir / NOTES, store.state_json):
        path.write_text("{", encoding="utf-8")
    (entry,) = list_runs(tmp_path)
    record = read_record(entry)
    assert (record.label, record.notes, record.settings) == (store.dir.name, RunNotes(), {})
    assert record.value("loss") is None and record.value("state") == "damaged"
