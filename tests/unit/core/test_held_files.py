"""Calls on files that other programs hold."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from core import held_files
from core.held_files import is_sharing_violation, open_binary, read_all, remove_file, remove_folder, rename, retried
from tests.helpers.held_file import WINDOWS_ONLY, held, hold_for

pytestmark = pytest.mark.windows
HELD_S = 0.7


@pytest.mark.skipif(sys.platform == "win32", reason="there a refusal may pass")
def test_a_refusal_on_posix_is_final() -> None:
    calls = []

    def refused() -> None:
        calls.append(1)
        raise PermissionError(errno.EACCES, "no")

    with pytest.raises(PermissionError):
        retried(refused)
    assert calls == [1]


def test_other_errors_are_final(tmp_path: Path) -> None:
    calls = []

    def missing() -> bytes:
        calls.append(1)
        return (tmp_path / "missing").read_bytes()

    with pytest.raises(FileNotFoundError):
        retried(missing)
    assert calls == [1]
    assert not is_sharing_violation(FileNotFoundError(errno.ENOENT, "no"))


def test_files_are_opened_renamed_and_removed(tmp_path: Path) -> None:
    path, folder = tmp_path / "a", tmp_path / "b"
    with open_binary(path, "ab", buffering=0) as file:
        file.write(b"one")
    assert read_all(path) == b"one"
    folder.mkdir()
    rename(path, folder / "c")
    rename(folder, tmp_path / "d")
    remove_file(path)  # missing
    remove_folder(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


@WINDOWS_ONLY
def test_a_held_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    for call in (
        lambda: read_all(path),
        lambda: open_binary(path, "r+b").close(),
        lambda: os.close(retried(lambda: os.open(path, os.O_RDWR))),
        lambda: rename(path, tmp_path / "b"),
        lambda: rename(tmp_path / "b", path),
        lambda: remove_file(path),
    ):
        timer = hold_for(path if path.exists() else tmp_path / "b", HELD_S)
        call()
        timer.join()
    assert not path.exists()


@WINDOWS_ONLY
def test_a_folder_with_a_held_file_is_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"one")
    timer = hold_for(folder / "file", HELD_S)
    remove_folder(folder)
    timer.join()
    assert not folder.exists()


@WINDOWS_ONLY
def test_the_wait_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    with held(path):
        with pytest.raises(PermissionError) as caught:
            read_all(path, timeout_s=held_files.BRIEFLY_S)
        assert is_sharing_violation(caught.value)
        with pytest.raises(PermissionError):
            remove_file(path, timeout_s=held_files.BRIEFLY_S)
