"""Drives that folders can be kept on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.machine import drives
from core.machine.drives import drive_of, drives_among, free_bytes, list_drives


def test_only_drives_that_can_be_written_to_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drives, "SMALLEST", 1)
    here, other = str(tmp_path), str(tmp_path / "absent")
    (found,) = drives_among(
        [(here, "rw,fixed"), (here, "ro"), (here, "rw,cdrom"), (here, "rw,removable"), (other, "rw")]
    )
    assert found.root == tmp_path and 0 < found.free <= found.total
    monkeypatch.setattr(drives, "SMALLEST", 1 << 60)
    assert drives_among([(here, "rw")]) == []


@pytest.mark.parametrize(("windows", "offered"), [(False, 1), (True, 2)])
def test_one_drive_in_two_places_and_two_new_drives_of_one_make(
    windows: bool, offered: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drives, "_WINDOWS", windows)
    monkeypatch.setattr(drives, "_OWN_FILES", ())
    monkeypatch.setattr(drives, "SMALLEST", 1)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(drives.shutil, "disk_usage", lambda _: usage)
    (tmp_path / "again").mkdir()
    assert len(drives_among([(str(tmp_path), "rw"), (str(tmp_path / "again"), "rw")])) == offered


def test_this_machines_drives_can_be_listed() -> None:
    assert all(drive.root.is_dir() and drive.total >= drives.SMALLEST for drive in list_drives())


def test_the_room_for_a_folder_that_is_not_there_yet_is_its_drives(tmp_path: Path) -> None:
    free = free_bytes(tmp_path / "not" / "there")
    assert free is not None and free > 0
    assert drive_of(tmp_path / "not" / "there") in (
        tmp_path.drive,
        *(str(place) for place in (tmp_path, *tmp_path.parents)),
    )
