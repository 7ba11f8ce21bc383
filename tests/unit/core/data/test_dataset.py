"""What a dataset is: its files, size and hash, and why one cannot be used."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

import pytest

from core.data.dataset import check_size, estimate_samples, identify, list_dataset, list_files, look_at_beginnings
from core.errors import DatasetError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "mein Ördner"
    for name, text in {
        "b.txt": "bbb",
        "a/z.md": "zz",
        "a/A.py": "print()",
        "picture.png": "no text",
        ".hidden.txt": "x",
        ".git/config.txt": "x",
        "__pycache__/x.py": "x",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


def test_a_file_is_known_by_its_own_hash(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"hello\n")
    identity = identify(str(path))
    assert identity.sha256 == hashlib.sha256(b"hello\n").hexdigest()
    assert (identity.path, identity.kind, identity.files, identity.size_bytes) == (str(path), "file", 1, 6)
    assert identity.utf8


def test_a_folder_is_its_text_files_in_order(folder: Path) -> None:
    assert [path.relative_to(folder).as_posix() for path in list_files(str(folder))] == ["a/A.py", "a/z.md", "b.txt"]
    identity = identify(str(folder))
    assert (identity.kind, identity.files, identity.size_bytes) == ("folder", 3, 12)


def test_a_folders_hash_holds_names_and_contents(folder: Path) -> None:
    before = identify(str(folder)).sha256
    assert identify(str(folder)).sha256 == before
    (folder / "b.txt").write_bytes(b"bbB")
    os.utime(folder / "b.txt", ns=(1, 1))
    changed = identify(str(folder)).sha256
    (folder / "b.txt").rename(folder / "c.txt")
    assert len({before, changed, identify(str(folder)).sha256}) == 3


def test_copies_in_a_folder_are_told_and_small_files_are_not(tmp_path: Path) -> None:
    for name, text in {"train-1.txt": "a", "train-2.txt": "a", "valid.txt": "a", "train-3.txt": "b"}.items():
        (tmp_path / name).write_text(text * 300, encoding="utf-8")
    for name in ("train-4.txt", "train-5.txt"):
        (tmp_path / name).write_text("small", encoding="utf-8")
    same, leaked = identify(str(tmp_path)).notes[-2:]
    assert same == "Files with the same content, each of which is read: train-1.txt, train-2.txt, valid.txt."
    assert leaked == "1 of them is in the validation split too, so its loss is too low."
    (tmp_path / "valid.txt").unlink()
    assert identify(str(tmp_path)).notes == (
        "Files with the same content, each of which is read: train-1.txt, train-2.txt.",
    )


def test_a_run_inside_the_folder_is_not_part_of_the_data(folder: Path) -> None:
    before = identify(str(folder))
    run = folder / "runs" / "minigpt-1"
    (run / "logs").mkdir(parents=True)
    for name in ("run.toml", "state.json", "metrics.jsonl", "logs/host.log"):
        (run / name).write_text("growing", encoding="utf-8")
    assert identify(str(folder)) == before


def test_the_standard_library_is_always_there() -> None:
    identity = identify("stdlib://")
    assert (identity.path, identity.kind) == ("stdlib://", "stdlib")
    assert identity.size_bytes > 1_000_000
    files = list_files("stdlib://")
    assert {"os.py", "dataclasses.py"} <= {path.name for path in files}
    assert not any("site-packages" in path.parts or "test" in path.parts[-3:] for path in files)
    assert identify("stdlib://") == identity


def test_bytes_that_are_not_utf8_are_only_noted(tmp_path: Path) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes("Käse".encode("latin-1") * 10)
    assert not identify(str(path)).utf8
    path.write_bytes("Käse".encode()[:2])
    assert not identify(str(path)).utf8  # cut in the middle of a character


@pytest.mark.parametrize(
    ("content", "title"),
    [(b"", "The dataset is empty"), (b"GIF\0\0", "The dataset is not text"), ("hi".encode("utf-16"), "not text")],
)
def test_a_file_without_text_is_refused(tmp_path: Path, content: bytes, title: str) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        identify(str(path))
    assert title in caught.value.title
    assert str(path) in caught.value.cause


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "No dataset"),
        ("hf://a b/c", "does not name a dataset"),
        ("s3://bucket/x", "unsupported dataset type"),
        ("there/is/no/such file.txt", "no file or folder"),
        ("a\0b", "b"),
    ],
)
def test_what_is_no_dataset_says_why(text: str, words: str) -> None:
    with pytest.raises(DatasetError) as caught:
        identify(text)
    assert words in caught.value.cause
    assert caught.value.next_step


def test_a_name_as_on_the_hub_is_met_with_the_way_to_write_it() -> None:
    with pytest.raises(DatasetError) as caught:
        identify("owner/tiny-stories")
    assert caught.value.next_step == (
        "Check the path. For a dataset of the Hugging Face Hub, write hf://owner/tiny-stories."
    )
    with pytest.raises(DatasetError) as caught:
        identify("books/mine/one.txt")
    assert caught.value.next_step == "Check the path."


def test_a_folder_without_text(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds no text files"):
        identify(str(tmp_path))
    (tmp_path / "empty.txt").touch()
    with pytest.raises(DatasetError, match=r"empty \(empty\.txt\)"):
        identify(str(tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in the file system")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(DatasetError, match="neither a file nor a folder"):
        identify(str(tmp_path / "pipe.txt"))


@pytest.mark.skipif(sys.platform == "win32", reason="chmod does not take reading away on Windows")
@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_bytes(b"secret")
    path.chmod(0)
    with pytest.raises(DatasetError, match="permission"):
        identify(str(path))


def test_samples_are_counted_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(b"x" * 130)
    identity = identify(str(path))
    assert [estimate_samples(identity, n) for n in (129, 130, 64, 1)] == [1, 0, 2, 129]
    assert [estimate_samples(identity, 10, held_out=share) for share in (0.0, 0.5, 0.01)] == [12, 6, 11]
    check_size(identity, 64)
    with pytest.raises(DatasetError) as caught:
        check_size(identity, 65)
    assert caught.value.title == "The dataset is too small"
    assert "132" in caught.value.cause


def test_empty_and_binary_files_are_seen_by_their_beginnings(tmp_path: Path) -> None:
    text, nothing, binary = tmp_path / "a.txt", tmp_path / "empty.txt", tmp_path / "b.txt"
    text.write_text("some text", encoding="utf-8")
    nothing.write_bytes(b"")
    binary.write_bytes(b"\x7fELF\0\0")
    found = look_at_beginnings(str(text), list_dataset(str(text)))
    assert (found.size_bytes, found.files, found.is_counted) == (9, 1, True)
    with pytest.raises(DatasetError, match=r"empty\.txt is empty"):
        look_at_beginnings(str(nothing), list_dataset(str(nothing)))
    with pytest.raises(DatasetError, match="not text"):
        look_at_beginnings(str(tmp_path), list_dataset(str(tmp_path)))


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.jsonl.gz", "a.txt"])
def test_a_git_lfs_pointer_is_named_before_a_missing_package(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    path = tmp_path / name
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12\n")
    for look in (identify, lambda text: look_at_beginnings(text, list_dataset(text))):
        with pytest.raises(DatasetError, match=r"is a Git LFS pointer") as caught:
            look(str(path))
        assert str(path) in caught.value.cause and "git lfs pull" in caught.value.next_step
