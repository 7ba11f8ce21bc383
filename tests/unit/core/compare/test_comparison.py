"""`Comparison`: the table of two to eight runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.compare.comparison import compare_runs
from core.config import RunConfig
from core.errors import UsageError
from core.run_folder.notes import RunNotes, write_notes
from core.run_folder.store import RunStore


def run(folder: Path, name: str, **changes: Any) -> RunStore:
    store = RunStore.create(folder, RunConfig(**changes), folder / name)
    write_notes(store.dir, RunNotes(name=f"run, {name}"))
    return store


def test_what_differs_is_shown_and_what_is_the_same_is_counted(tmp_path: Path) -> None:
    found = compare_runs([run(tmp_path, "a", lr=0.5), run(tmp_path, "b")])
    parts = dict(found.sections())
    assert [row.name for row in parts["Settings"]] == ["lr"]
    assert found.same_text == f"{len(found.settings) - 1} settings are the same."
    everything = dict(found.sections(all_rows=True))
    assert len(everything["Settings"]) == len(found.settings) > 40
    assert "Learning rate  0.5" in found.as_text()
    assert "Seed" not in found.as_text() and "Seed" in found.as_text(all_rows=True)


def test_json_holds_the_same(tmp_path: Path) -> None:
    found = compare_runs([run(tmp_path, "a", lr=0.5), run(tmp_path, "b")])
    document = found.as_dict()
    assert document["settings"] == {"lr": [0.5, 0.001]}
    assert document["runs"][1] == {"path": str(tmp_path / "b"), "label": "run, b"}
    assert document["same_settings"] == len(found.settings) - 1


def test_text_fits_a_terminal_and_tabs_part_cells(tmp_path: Path) -> None:
    found = compare_runs([run(tmp_path, "a", lr=0.5), run(tmp_path, "b", dataset_file="x" * 200)])
    assert max(map(len, found.as_text().splitlines())) > 200
    short = found.as_text(width=60).splitlines()
    assert max(map(len, short)) <= 60
    assert any("x…x" in line for line in short)
    lines = [line.split("\t") for line in found.as_tabs().splitlines()]
    assert lines[0] == ["", "run, a", "run, b"]
    assert ["Learning rate", "0.5", "0.001"] in lines


def test_damaged_missing_and_unlike_runs_are_told(tmp_path: Path) -> None:
    stores = [run(tmp_path, "a"), run(tmp_path, "b", recipe="script"), run(tmp_path, "c"), RunStore(tmp_path / "d")]
    stores[2].state_json.write_text("{", encoding="utf-8")
    first, second, third = compare_runs(stores).notes
    assert first.startswith("“run, c” is damaged: ")
    assert second == "“d” is no longer on this disk."
    assert third == "The runs train different recipes, so no result is marked as the best."


def test_two_runs_of_one_name_say_which(tmp_path: Path) -> None:
    stores = [run(tmp_path, name) for name in ("a", "b")]
    for store in stores:
        write_notes(store.dir, RunNotes(name="twin"))
    assert compare_runs(stores).labels == ("twin · a", "twin · b")


@pytest.mark.parametrize("count", [1, 9])
def test_two_to_eight_different_runs(tmp_path: Path, count: int) -> None:
    stores = [run(tmp_path, f"run{number}") for number in range(count)]
    with pytest.raises(UsageError, match="2 to 8"):
        compare_runs([*stores, stores[0]])
