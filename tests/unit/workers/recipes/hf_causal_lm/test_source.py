"""What `--model` means: a folder, a name of the Hub, or an architecture."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankdeck.recipe import ConfigError
from workers.recipes.hf_causal_lm.source import Source, cached_folder, find_source, not_here, size_text, wanted_files


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hub"


@pytest.mark.parametrize(
    ("model", "source"),
    [
        (" llama ", Source("scratch", "llama")),
        ("owner/name", Source("hub", "owner/name")),
        ("owner/name@refs/pr/1", Source("hub", "owner/name", "refs/pr/1")),
        ("hf://gpt2", Source("hub", "gpt2")),
        ("hf://owner/na.me-1@v2", Source("hub", "owner/na.me-1", "v2")),
    ],
)
def test_a_name_is_the_hubs_or_an_architecture(model: str, source: Source) -> None:
    assert find_source(model) == source


@pytest.mark.parametrize(
    "model", ["", "mistral", "a/b/c", "hf://", "../name", "owner/..n", "hf://a b", "/no/folder", "C:\\models\\mine"]
)
def test_other_texts_are_refused(model: str) -> None:
    with pytest.raises(ConfigError, match="neither a folder") as caught:
        find_source(model)
    assert caught.value.field == "model" and caught.value.title == "There is no such model"


def test_a_folder_that_is_there_wins(tmp_path: Path) -> None:
    for name in ("llama", "owner/name"):
        (tmp_path / name).mkdir(parents=True)
        assert find_source(name) == Source("folder", name, folder=tmp_path / name)
    assert find_source("hf://owner/name").kind == "hub", "the Hub was asked for"


@pytest.mark.parametrize(
    ("files", "whole"),
    [
        ((), False),
        (("config.json",), False),
        (("model.safetensors",), False),
        (("config.json", "model.safetensors"), True),
        (("config.json", "pytorch_model.bin"), True),
    ],
)
def test_only_a_whole_download_counts(cache: Path, files: tuple[str, ...], whole: bool) -> None:
    snapshot = cache / "models--owner--name" / "snapshots" / "c0"
    snapshot.mkdir(parents=True)
    for name in files:
        (snapshot / name).touch()
    assert cached_folder("owner/name", "c0") == (snapshot if whole else None)
    assert cached_folder("owner/name") is None, "no branch points at it"


def test_the_refusal_says_where_it_was_looked_for(cache: Path) -> None:
    source = Source("hub", "owner/name")
    refusal = not_here(source)
    assert str(cache) in refusal.next_step and "its size is shown" in refusal.next_step
    assert "--" not in refusal.window_step and refusal.allows == "allow_download"


def test_sizes_are_those_of_what_is_fetched() -> None:
    files = [("model.safetensors", 5_000_000_000), ("config.json", 600), ("tf_model.h5", 7), ("pytorch_model.bin", 9)]
    assert wanted_files(files) == files[:2]
    assert (size_text(5_000_000_600), size_text(2_500_000)) == ("5.0 GB", "2.5 MB")
