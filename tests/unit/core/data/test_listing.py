"""Files of a folder as people have them: splits, pages about the data, what systems put there, links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.data.dataset import estimate_samples, identify, list_dataset
from core.data.listing import find_splits
from core.errors import DatasetError


def fill(folder: Path, *names: str, text: str = "text") -> str:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder)


def read(folder: str) -> list[str]:
    return [path.relative_to(folder).as_posix() for path, _ in list_dataset(folder).files]


@pytest.mark.parametrize(
    ("training", "validation", "test"),
    [
        ("train-0-of-2.parquet train-1-of-2.parquet", "validation-0-of-1.parquet", "test-0-of-1.parquet"),
        ("train.jsonl", "valid.jsonl", ""),
        ("x_train.csv", "x_dev.csv", "x_test.csv"),
        ("train/a.txt train/deep/b.txt", "validation/a.txt", "test/a.txt"),
        ("data/train-0.jsonl.gz", "data/eval-0.jsonl.gz", ""),
        ("wiki.train.txt", "wiki.valid.txt", "wiki.test.txt"),
        ("wiki.train.raw", "wiki.valid.raw", "wiki.test.raw"),
        ("train.en train.de", "valid.en valid.de", "test.en test.de"),
        ("train", "valid", "test"),
        ("trainset.csv", "devset.csv", "testset.csv"),
        ("TRAIN.CSV", "", "TEST.CSV"),
        ("en/train.txt de/train.txt", "en/val.txt de/val.txt", ""),
        ("multinli_1.0_train.jsonl", "multinli_1.0_dev_matched.jsonl multinli_1.0_dev_mismatched.jsonl", ""),
    ],
)  # fmt: skip
def test_splits_are_told_by_their_names(training: str, validation: str, test: str) -> None:
    parts = find_splits([*training.split(), *validation.split(), *test.split()])
    for names, split in ((training, "train"), (validation, "validation"), (test, "test")):
        assert {parts[name] for name in names.split()} <= {split}


@pytest.mark.parametrize(
    "names",
    [
        ("testimony.txt", "latest.txt", "trains.txt"),
        ("train.jsonl", "more.jsonl"),
        ("test.txt", "dev.txt"),
        ("how-to-train-your-dragon.txt", "test-of-time.txt", "the-acid-test.txt"),
        ("train.py", "test_train.py", "eval.py"),
        ("train.jsonl", "test.csv"),
        ("a/train.txt", "b/test.txt"),
    ],
)
def test_words_without_a_companion_are_no_splits(names: tuple[str, ...]) -> None:
    assert set(find_splits(names).values()) == {"train"}


def test_a_validation_split_comes_last_and_all_is_said(tmp_path: Path) -> None:
    folder = fill(tmp_path, "valid.csv", "train.csv", "test.csv", "sample_submission.csv", "README.md", "LICENSE")
    listing = list_dataset(folder)
    assert read(folder) == ["train.csv", "valid.csv"] and listing.validation == 1
    assert listing.notes == (
        "Training split: train.csv.",
        "Validation split: valid.csv; nothing is held out of the training split.",
        "Test split left out, kept for a last test: test.csv.",
        "One file is left out, of no split: sample_submission.csv.",
        "2 files are left out, about the dataset (LICENSE, README.md).",
    )
    assert read(folder) != [path.name for path, _ in list_dataset(folder, "all").files]
    assert [path.name for path, _ in list_dataset(folder, "all").files] == [
        "README.md", "sample_submission.csv", "test.csv", "train.csv", "valid.csv",
    ]  # fmt: skip


def test_a_test_split_is_not_measured_on(tmp_path: Path) -> None:
    listing = list_dataset(fill(tmp_path, "train.txt", "test.txt"))
    assert [path.name for path, _ in listing.files] == ["train.txt"] and not listing.validation
    assert "a part of the training split is held out" in listing.notes[1]


def test_samples_are_counted_without_the_validation_split(tmp_path: Path) -> None:
    fill(tmp_path, "train.txt", text="x" * 1001)
    fill(tmp_path, "valid.txt", text="x" * 500)
    identity = identify(str(tmp_path))
    assert (identity.held_out_bytes, estimate_samples(identity, 10, 0.5)) == (500, 100)


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (("a.txt", "README.md"), ["a.txt"]),
        (("a.txt", "README.txt", "LICENSE.txt"), ["a.txt"]),
        (("a.md", "README.md"), ["README.md", "a.md"]),  # a manual
        (("README.md",), ["README.md"]),
        (("a.jsonl", "dataset_infos.json", "metadata.jsonl"), ["a.jsonl"]),
        (("readme-of-the-dead.txt", "b.txt"), ["b.txt", "readme-of-the-dead.txt"]),
    ],
)
def test_pages_about_the_data_are_left_out(names: tuple[str, ...], kept: list[str], tmp_path: Path) -> None:
    assert read(fill(tmp_path, *names)) == kept


def test_what_systems_put_there_may_come_and_go(tmp_path: Path) -> None:
    folder = fill(tmp_path, "a.txt")
    before = identify(folder)
    fill(tmp_path, "desktop.ini", "Thumbs.db", ".DS_Store", "~$brief.docx", ".hidden.txt", "._a.txt", "b/desktop.ini")
    assert identify(folder) == before
    fill(tmp_path, "empty.txt", text="")
    fill(tmp_path, "README.md", "notes.docx")
    after = identify(folder)
    assert (after.sha256, after.files) == (before.sha256, 1) and len(after.notes) == 3
    (tmp_path / "desktop.ini").write_text("changed", encoding="utf-8")
    assert identify(folder) == after


def test_files_that_are_no_text_are_named_with_their_kinds(tmp_path: Path) -> None:
    folder = fill(tmp_path, "a.txt", "b.docx", "c.docx", "d.PDF", "vocab", text="PK\x03\x04")
    (note,) = list_dataset(folder).notes
    assert note == "4 files are left out, no text that Rankdeck reads (2 .docx, 1 .pdf, 1 without ending)."
    (tmp_path / "a.txt").unlink()
    with pytest.raises(DatasetError, match=r"holds no text files.*2 \.docx"):
        list_dataset(folder)


def test_text_with_unknown_endings_is_read_where_there_is_no_other(tmp_path: Path) -> None:
    folder = fill(tmp_path, "AA/wiki_00", "AB/wiki_00", "wiki.raw", "_SUCCESS.crc", "README")
    fill(tmp_path, "a.png", text="\x89PNG\0")
    fill(tmp_path, "_SUCCESS", text="")
    listing = list_dataset(folder)
    assert read(folder) == ["AA/wiki_00", "AB/wiki_00", "_SUCCESS.crc", "wiki.raw"]
    assert listing.notes == (
        "One file is left out, about the dataset (README).",
        "2 files are left out, no text that Rankdeck reads (1 .png, 1 without ending).",
        "Read although Rankdeck does not know the endings: 2 without ending, 1 .crc, 1 .raw.",
    )
    fill(tmp_path, "more.txt")
    assert read(folder) == ["more.txt"]


@pytest.mark.parametrize(
    ("names", "note"),
    [
        (("words.jsonl", "words.py"), "One file is program code and trained on, too: words.py."),
        (("a.csv", "a.jsonl"), "Files of one name in several forms, each of which is read: a.csv, a.jsonl."),
        (
            ("data.csv", "validation.csv"),
            "Trained on, though named as another split, as no training split is beside it: validation.csv.",
        ),
        (
            ("dev.txt", "test.txt"),
            "Trained on, though named as another split, as no training split is beside it: dev.txt, test.txt.",
        ),
        (("a.py", "b.py", "eval.py", "a.md"), ""),
        (("a.txt", "node_modules/b.js", "_delta_log/0.json"), ""),
    ],
)
def test_what_a_folder_holds_besides_is_named(names: tuple[str, ...], note: str, tmp_path: Path) -> None:
    assert "".join(list_dataset(fill(tmp_path, *names)).notes) == note


def link(target: Path, place: Path) -> None:
    try:
        place.symlink_to(target, target_is_directory=True)
    except OSError:
        pytest.skip("Windows lets only some users make links")
    if not place.exists():
        pytest.skip("links are not followed here (Wine)")


def test_a_linked_folder_is_read_once_and_circles_end(tmp_path: Path) -> None:
    folder = fill(tmp_path / "data", "own.txt", "sub/s.txt")
    fill(tmp_path / "other", "r.txt")
    link(tmp_path / "other", tmp_path / "data" / "links")
    link(tmp_path / "data", tmp_path / "other" / "up")
    link(tmp_path / "data" / "sub", tmp_path / "data" / "again")
    link(tmp_path, tmp_path / "data" / "above")
    assert read(folder) == ["links/r.txt", "own.txt", "sub/s.txt"]
    assert list_dataset(folder).notes == (
        "Linked folders left out, they lead to what is read anyway: above, again, up.",
    )


def test_a_folder_that_is_itself_a_link_is_read_whole(tmp_path: Path) -> None:
    fill(tmp_path / "data", "a.txt", "sub/b.txt", "sub/deep/c.txt")
    link(tmp_path / "data", tmp_path / "named")
    assert read(str(tmp_path / "named")) == ["a.txt", "sub/b.txt", "sub/deep/c.txt"]


@pytest.mark.skipif(os.name == "nt", reason="needs a link to a file")
def test_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    folder = fill(tmp_path, "a.txt")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    assert list_dataset(folder).notes == ("One file is left out, links to nothing (gone.txt).",)
