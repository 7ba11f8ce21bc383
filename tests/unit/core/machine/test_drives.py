"""Free space on the drive of a folder."""

from __future__ import annotations

from pathlib import Path

from core.machine.drives import drive_of, free_bytes


def test_the_room_for_a_folder_that_is_not_there_yet_is_its_drives(tmp_path: Path) -> None:
    free = free_bytes(tmp_path / "not" / "there")
    assert free is not None and free > 0
    assert drive_of(tmp_path / "not" / "there") in (
        tmp_path.drive,
        *(str(place) for place in (tmp_path, *tmp_path.parents)),
    )
