from __future__ import annotations

import errno
import json
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from core.errors import NewerVersionError, PreflightError, RankdeckError, StateFileError
from core.files.atomic import (
    copy_atomic,
    explain,
    read_json,
    read_text,
    replace_with_retry,
    require_format,
    sha256_file,
    write_atomic,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a folder with ümläuts"
    made.mkdir()
    return made


def test_a_file_is_replaced_and_nothing_else_is_left(folder: Path) -> None:
    write_atomic(folder / "a.bin", b"old" * 1000)
    write_atomic(folder / "a.bin", "zwölf\nneu\n")
    assert (folder / "a.bin").read_bytes() == "zwölf\nneu\n".encode()
    assert [path.name for path in folder.iterdir()] == ["a.bin"]


def test_a_name_as_long_as_the_system_allows_can_be_replaced(folder: Path) -> None:
    path = folder / ("n" * 200 + ".json")
    write_atomic(path, "1")
    write_atomic(path, "2")
    assert read_text(path) == "2"


def test_a_failed_write_leaves_the_old_file_and_no_temporary(folder: Path) -> None:
    taken = folder / "a"
    taken.mkdir()
    (taken / "inside").write_bytes(b"")
    with pytest.raises(RankdeckError):
        write_atomic(taken, b"a file cannot replace a folder")
    assert [path.name for path in folder.iterdir()] == ["a"]
    assert (taken / "inside").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permission bits")
def test_mode_is_set_whatever_the_umask(folder: Path) -> None:
    old = os.umask(0)
    try:
        write_atomic(folder / "secret", b"token", mode=0o600)
    finally:
        os.umask(old)
    assert stat.S_IMODE((folder / "secret").stat().st_mode) == 0o600


def test_a_private_file_can_be_read_and_replaced_by_its_owner(folder: Path) -> None:
    path = folder / "host.json"
    write_atomic(path, b"one", mode=0o600)
    write_atomic(path, b"two", mode=0o600)
    assert path.read_bytes() == b"two"
    path.unlink()


@pytest.mark.parametrize(
    ("number", "title", "preflight"),
    [
        (errno.ENOSPC, "The disk is full", True),
        (errno.EACCES, "No permission", True),
        (errno.EPERM, "No permission", True),
        (errno.EROFS, "The drive is read-only", True),
        (errno.ENAMETOOLONG, "The path is too long", True),
        (errno.ENOENT, "A folder is missing", True),
        (errno.ENOTDIR, "A file is in the way", True),
        (errno.EISDIR, "A folder is in the way", True),
        (errno.EIO, "Disk error", False),
    ],
)
def test_each_refusal_has_its_words(number: int, title: str, preflight: bool) -> None:
    words = explain(OSError(number, os.strerror(number)), "x could not be written")
    assert words.title == title
    assert isinstance(words, PreflightError) is preflight
    assert words.cause.startswith("x could not be written: ")


def test_readers_see_the_old_file_or_the_new_never_a_part(folder: Path) -> None:
    path = folder / "state.json"
    write_atomic(path, json.dumps(["a"] * 2000))
    stop = threading.Event()
    seen: list[str] = []

    def read() -> None:
        while not stop.is_set():
            letters = set(read_json(path))
            assert len(letters) == 1
            seen.append(letters.pop())
            stop.wait(0.002)  # Windows replaces no file that is open, and this thread would have it open all the time

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for turn in range(30):
            write_atomic(path, json.dumps(["ab"[turn % 2]] * 2000), durable=False)
    finally:
        stop.set()
        reader.join(timeout=30)
    assert seen
    assert not reader.is_alive()


def test_copy_is_whole(folder: Path) -> None:
    (folder / "source").write_bytes(os.urandom(3_000_000))
    copy_atomic(folder / "source", folder / "target")
    assert sha256_file(folder / "source") == sha256_file(folder / "target")
    with pytest.raises(RankdeckError):
        copy_atomic(folder / "missing", folder / "target")
    assert sha256_file(folder / "source") == sha256_file(folder / "target")


def test_replace_does_not_retry_what_cannot_pass(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_with_retry(folder / "missing", folder / "target", timeout_s=60)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b'{"a": [1, 2', "cut off"),
        (b'{"a": "unfinished', "cut off"),
        (b'{"a": nonsense}', "cannot be read as JSON: expecting value (line 1, column 7)"),
        (b"\xff\xfe\x00", "UTF-16"),
        (b"{\xff}", "byte 1 is not UTF-8"),
        (b"[" * 100_000, "nested more than 64 levels deep"),
    ],
)
def test_unreadable_json_is_said_in_words(folder: Path, content: bytes, words: str) -> None:
    (folder / "a.json").write_bytes(content)
    with pytest.raises(StateFileError) as caught:
        read_json(folder / "a.json")
    assert words in caught.value.cause
    assert "a.json" in caught.value.cause


def test_missing_and_folder_are_told_apart(folder: Path) -> None:
    with pytest.raises(StateFileError, match="does not exist"):
        read_text(folder / "missing")
    with pytest.raises(StateFileError, match="is a folder"):
        read_text(folder)


def test_a_byte_order_mark_of_a_windows_editor_is_no_problem(folder: Path) -> None:
    (folder / "a.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(folder / "a.json") == {"a": 1}


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ([], StateFileError),
        ({"format": "other", "version": 1}, StateFileError),
        ({"version": 1}, StateFileError),
        ({"format": "thing"}, StateFileError),
        ({"format": "thing", "version": "1"}, StateFileError),
        ({"format": "thing", "version": True}, StateFileError),
        ({"format": "thing", "version": 0}, StateFileError),
        ({"format": "thing", "version": 3}, NewerVersionError),
    ],
)
def test_a_foreign_or_newer_format_is_refused(document: object, error: type[StateFileError]) -> None:
    with pytest.raises(error):
        require_format(document, Path("x.json"), "thing", 2)


def test_an_older_format_is_taken() -> None:
    document = {"format": "thing", "version": 1, "a": 2}
    assert require_format(document, Path("x.json"), "thing", 2) == document
