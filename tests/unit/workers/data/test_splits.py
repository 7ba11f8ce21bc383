"""A validation split as tokens: behind those that are trained on, and held out whole."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.errors import DatasetError
from workers.data.reading.corpus import open_corpus, texts
from workers.data.reading.hub import _main
from workers.data.tokens.token_cache import tokenise
from workers.data.tokens.tokenizer_spec import TokenizerSpec


def write(folder: Path, **splits: str) -> str:
    for name, text in splits.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("killed", [False, True])
def test_the_validation_split_is_held_out_whole(killed: bool, tmp_path: Path) -> None:
    data = write(tmp_path, train="abcde" * 20, valid="fghij" * 10, test="xyz")
    cache = tmp_path.parent / f"cache-{killed}-{tmp_path.name}"
    corpus = open_corpus(data, {})
    made = tokenise(corpus, TokenizerSpec(), cache)
    found = tokenise(open_corpus(data, {}), TokenizerSpec(), cache) if killed else made
    cut = found.cut(7, 0.5)
    tokens = bytes(found.open())
    assert (
        tokens[: cut.train_tokens] == b"abcde" * 20 + b"\n\n" and tokens[cut.train_tokens :] == b"fghij" * 10 + b"\n\n"
    )
    assert (cut.samples, cut.val_samples) == (101 // 7, 51 // 7)
    assert "".join(texts(corpus, 10**6)).strip() == "abcde" * 20  # a tokenizer learns of the training split alone


def test_recipes_that_know_no_splits_see_the_training_split(tmp_path: Path) -> None:
    data = write(tmp_path, train="abcde" * 20, valid="fghij" * 10)
    made = tokenise(open_corpus(data, {}).without_validation(), TokenizerSpec(), tmp_path.parent / "alone")
    assert bytes(made.open()).strip() == b"abcde" * 20 and made.training_documents is None


def test_every_file_is_trained_on_where_that_is_asked(tmp_path: Path) -> None:
    corpus = open_corpus(write(tmp_path, train="abc", valid="def"), {}, rule="all")
    assert len(corpus.sources) == 2 and not corpus.held_out


def test_a_split_without_a_sample_is_refused_by_name(tmp_path: Path) -> None:
    data = write(tmp_path, train="abcde" * 20, valid="f")
    made = tokenise(open_corpus(data, {}), TokenizerSpec(), tmp_path.parent / "small")
    with pytest.raises(DatasetError, match="The validation split has 3 tokens") as caught:
        made.cut(7, 0.5)
    assert "--data-files all" in caught.value.next_step


@pytest.mark.parametrize(
    ("names", "split", "files", "held_out"),
    [
        (("train", "validation", "test"), "", "train", "validation"),
        (("train", "dev"), "train", "train", "dev"),
        (("train", "test"), "", "train", ""),
        (("train", "validation"), "validation", "validation", ""),
        (("only",), "", "only", ""),
    ],
)
def test_a_dataset_of_the_hub_has_splits_too(
    names: tuple[str, ...], split: str, files: str, held_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {name: SimpleNamespace(cache_files=[{"filename": f"{name}.arrow"}]) for name in names}
    package = SimpleNamespace(disable_progress_bars=lambda: None, load_dataset=lambda *_, **__: found)
    monkeypatch.setitem(sys.modules, "datasets", package)
    answer = _main("open", "owner/name", "", split, "")
    assert answer["files"] == [f"{files}.arrow"] and answer["held_out_split"] == held_out
    assert answer["held_out"] == ([f"{held_out}.arrow"] if held_out else [])
