"""notes.json: what a person says of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import StateFileError, UsageError
from core.run_folder.notes import MAX_TAGS, NOTES, RunNotes, read_notes, write_notes

pytestmark = pytest.mark.windows


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    assert read_notes(tmp_path) == RunNotes()
    notes = RunNotes().renamed("  Größter Lauf №7 ").noted("two\nlines\n").tagged(["Night", "lr-test", "night"])
    write_notes(tmp_path, notes)
    assert read_notes(tmp_path) == RunNotes("Größter Lauf №7", "two\nlines", ("lr-test", "night"))
    write_notes(tmp_path, notes.tagged(removed=["NIGHT", "absent"]).renamed(""))
    assert read_notes(tmp_path) == RunNotes("", "two\nlines", ("lr-test",))


@pytest.mark.parametrize("name", ["x" * 121, "two\nlines", "bell\a"])
def test_a_name_fits_a_line(name: str) -> None:
    with pytest.raises(UsageError, match="at most 120"):
        RunNotes().renamed(name)


@pytest.mark.parametrize("tag", ["", " ", "two words", "a,b", "state:x", "x" * 41])
def test_a_tag_is_one_word(tag: str) -> None:
    with pytest.raises(UsageError, match="not a tag"):
        RunNotes().tagged([tag])


def test_notes_have_limits() -> None:
    with pytest.raises(UsageError, match="at most 50 tags"):
        RunNotes().tagged(f"t{n}" for n in range(MAX_TAGS + 1))
    with pytest.raises(UsageError, match="50,000"):
        RunNotes().noted("x" * 50_001)


@pytest.mark.parametrize(
    "change",
    [{"name": 7}, {"name": "x" * 121}, {"tags": "night"}, {"tags": [1]}, {"tags": ["t"] * 51}, {"note": None}],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    write_notes(tmp_path, RunNotes("name"))
    document = json.loads((tmp_path / NOTES).read_text(encoding="utf-8"))
    (tmp_path / NOTES).write_text(json.dumps(document | change), encoding="utf-8")
    with pytest.raises(StateFileError):
        read_notes(tmp_path)
