"""Which dataset of the Hub is meant, and whether it lies here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from core.data.hub import DownloadNeededError, HubName, cache_folder, cached_info, cached_text_bytes, check_download
from core.errors import DatasetError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hf://owner/name", HubName("owner/name")),
        (" hf://squad ", HubName("squad")),
        ("hf://o/n:plain-text", HubName("o/n", "plain-text")),
        ("hf://o/n:en:test", HubName("o/n", "en", "test")),
        ("hf://o/n::test", HubName("o/n", "", "test")),
        ("hf://o/n@refs/pr/1:en", HubName("o/n", "en", "", "refs/pr/1")),
    ],
)
def test_a_name_is_read_and_written_back(text: str, expected: HubName) -> None:
    assert HubName.parse(text) == expected
    assert str(expected) == text.strip()


@pytest.mark.parametrize("text", ["hf://", "hf://a/b/c", "hf://a b", "hf://a/b:c:d:e", "hf://a/b@"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(DatasetError, match="does not name a dataset") as caught:
        HubName.parse(text)
    assert "hf://owner/name" in caught.value.next_step


@pytest.mark.parametrize(
    ("variables", "parts"),
    [
        ({"HF_DATASETS_CACHE": "d", "HF_HOME": "h", "XDG_CACHE_HOME": "x"}, ("d",)),
        ({"HF_DATASETS_CACHE": " ", "HF_HOME": "h", "XDG_CACHE_HOME": "x"}, ("h", "datasets")),
        ({"XDG_CACHE_HOME": "x"}, ("x", "huggingface", "datasets")),
    ],
)
def test_the_cache_is_where_the_datasets_package_has_it(
    variables: dict[str, str], parts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_DATASETS_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        value = variables.get(name, "")
        monkeypatch.setenv(name, str(tmp_path / value) if value.strip() else value)
    assert cache_folder() == tmp_path.joinpath(*parts)


def test_without_variables_the_cache_is_in_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_DATASETS_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache" / "huggingface" / "datasets"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    return tmp_path


def put(cache: Path, info: Any, config: str = "default", version: str = "0.0.0", age_s: float = 0.0) -> None:
    path = cache / "o___n" / config / version / "hash" / "dataset_info.json"
    path.parent.mkdir(parents=True)
    path.write_text(info if isinstance(info, str) else json.dumps(info), encoding="utf-8")
    os.utime(path, (1e9 - age_s, 1e9 - age_s))


def test_the_newest_copy_that_can_be_read_counts(cache: Path) -> None:
    assert cached_info(HubName("o/n")) is None
    put(cache, {"version": "old"}, version="1.0.0", age_s=50)
    put(cache, {"version": "new"}, version="2.0.0", age_s=20)
    put(cache, "[1]", version="3.0.0", age_s=10)
    put(cache, "{", version="4.0.0")
    assert cached_info(HubName("o/n")) == {"version": "new"}
    assert cached_info(HubName("o/n", "en")) is None


@pytest.mark.parametrize(
    ("info", "split", "size"),
    [
        ({"splits": {"train": {"num_bytes": 5}, "test": {"num_bytes": 7}}}, "", 5),
        ({"splits": {"train": {"num_bytes": 5}, "test": {"num_bytes": 7}}}, "test", 7),
        ({"splits": {"all": {"num_bytes": 9}}}, "", 9),
        ({"splits": {"train": {"num_bytes": "many"}}}, "", None),
        ({"splits": {"train": 5}}, "", None),
        ({"splits": {}}, "", None),
        ({}, "", None),
    ],
)
def test_the_size_of_a_copys_rows(cache: Path, info: dict[str, Any], split: str, size: int | None) -> None:
    put(cache, info)
    assert cached_text_bytes(HubName("o/n", "", split)) == size


def test_a_download_is_refused_unless_allowed_or_not_needed(cache: Path) -> None:
    with pytest.raises(DownloadNeededError) as caught:
        check_download(HubName("o/n"), {"allow_download": "true"})
    assert "hf://o/n is not on this machine" in caught.value.cause and str(cache) in caught.value.next_step
    check_download(HubName("o/n"), {"allow_download": True})
    put(cache, {})
    check_download(HubName("o/n"), {})
