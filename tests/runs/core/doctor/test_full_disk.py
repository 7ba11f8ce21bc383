"""Checks and self-tests where the disk is full: results with a reason, never a crash."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.doctor.folders import check_writing
from core.doctor.self_tests import SelfTest, run_self_test
from core.machine.devices.cpu import cpu_slots
from core.machine.platform import this_platform
from tests.helpers.small_drive import small_drive

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def full_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of temporary files, on a drive without a free byte."""
    with small_drive(tmp_path / "full drive", 1) as folder:
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        monkeypatch.setenv("TMPDIR", str(folder))
        with pytest.raises(OSError), (folder / "film.bin").open("wb", buffering=0) as film:
            while True:
                film.write(b"x" * 4096)
        yield folder


def test_a_full_folder_of_runs_is_not_writable(full_drive: Path) -> None:
    found = check_writing(full_drive)
    assert found.level == "fail" and "full" in found.text and found.next_step
    assert [path.name for path in full_drive.iterdir()] == ["film.bin"]


@pytest.mark.parametrize("way", ["compute", "gloo", "shared"])
def test_a_self_test_without_room_says_so(way: str, full_drive: Path, tmp_path: Path) -> None:
    devices = cpu_slots()[: 1 if way == "compute" else 2]
    (found,) = run_self_test(SelfTest(way, way, tuple(devices)), this_platform(), tmp_path)
    assert found.level == "fail" and found.text == f"the disk of the temporary folder is full ({full_drive})"
    assert found.next_step.startswith("Free some space")
    assert [path.name for path in full_drive.iterdir()] == ["film.bin"]
