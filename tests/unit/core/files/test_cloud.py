"""OneDrive: folders that are uploaded, files that are not here."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.files.atomic import explain
from core.files.cloud import CLOUD_ERRORS, cloud_folder, count_placeholders


def test_a_folder_below_onedrive_is_found() -> None:
    variables = {"OneDrive": "", "OneDriveCommercial": r"C:\Users\jo\OneDrive - Firm"}
    assert cloud_folder(Path(r"C:\Users\jo\OneDrive - Firm\Documents\runs"), variables) is not None
    assert cloud_folder(Path(r"c:\users\JO\onedrive - firm"), variables) is not None
    assert cloud_folder(Path(r"C:\Users\jo\runs"), variables) is None
    assert cloud_folder(Path(r"C:\Users\jo\runs"), {}) is None


@pytest.mark.parametrize(
    ("attributes", "missing"),
    [(0x20, 0), (0x80, 0), (0x1020, 1), (0x400020, 1), (0x40020, 1), (0x80020, 0)],
)
def test_attributes_say_whether_a_file_is_here(attributes: int, missing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """0x80000 is FILE_ATTRIBUTE_PINNED: always kept on this device."""
    monkeypatch.setattr(Path, "stat", lambda _: SimpleNamespace(st_file_attributes=attributes))
    assert count_placeholders([Path("a.txt")]) == missing


def test_a_common_file_is_no_placeholder(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"text")
    assert count_placeholders([path, tmp_path / "missing"]) == 0
    if sys.platform == "win32":
        import ctypes

        if ctypes.WinDLL("kernel32").SetFileAttributesW(str(path), 0x1000) and path.stat().st_file_attributes & 0x1000:
            assert count_placeholders([path]) == 1


def test_a_file_that_onedrive_does_not_fetch_is_said() -> None:
    error = OSError(errno.EINVAL, "The cloud file provider is not running")
    error.winerror = 362  # type: ignore[attr-defined]  # it has one on Windows only
    told = explain(error, "data.txt could not be read")
    assert (told.title, "OneDrive" in told.next_step) == ("A file is in the cloud", True)
    assert {358, 362, 395, 404} <= CLOUD_ERRORS
