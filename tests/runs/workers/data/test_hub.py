"""Datasets of the Hub: a cached copy is used without a network, anything else is refused before it is downloaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.data.dataset import identify
from core.data.hub import HubName, cached_info, check_download
from core.errors import DatasetError, PreflightError
from workers.data.reading.corpus import open_corpus
from workers.data.reading.row_counts import RowCounts

PREPARE = "import sys, datasets; datasets.disable_progress_bars(); datasets.load_dataset(sys.argv[1])"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("hf://owner/name", HubName("owner/name")),
        ("hf://owner/name:20231101.de", HubName("owner/name", "20231101.de")),
        ("hf://owner/name:en:train", HubName("owner/name", "en", "train")),
        ("hf://owner/name@v1.0:en:test", HubName("owner/name", "en", "test", "v1.0")),
        ("hf://gsm8k", HubName("gsm8k")),
    ],
)
def test_a_name_is_understood(text: str, name: HubName) -> None:
    assert HubName.parse(text) == name and str(name) == text


@pytest.mark.parametrize("text", ["hf://", "hf://a b", "hf://a/b/c", "hf://a/b:c:d:e", "hf://../x y"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(DatasetError) as caught:
        HubName.parse(text)
    assert "hf://owner/name" in caught.value.next_step


def test_without_the_package_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.machine.packages.importlib.util.find_spec", lambda _: None)
    with pytest.raises(PreflightError) as caught:
        identify("hf://owner/name")
    assert "[hf]" in caught.value.next_step


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the `datasets` package of this test's own, and no network."""
    folder = tmp_path / "hf"
    monkeypatch.setenv("HF_HOME", str(folder))
    monkeypatch.delenv("HF_DATASETS_CACHE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
    return folder


def test_what_is_not_here_is_not_downloaded_unasked(home: Path) -> None:
    name = HubName("owner/name")
    with pytest.raises(DatasetError) as caught:
        check_download(name, {"allow_download": False})
    assert str(home) in caught.value.next_step and "allow_download=true" in caught.value.next_step
    check_download(name, {"allow_download": True})


@pytest.mark.slow
def test_a_cached_copy_is_read_without_a_network(home: Path, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="datasets of the Hub need the datasets package")
    source = tmp_path / "tiny"
    source.mkdir()
    for split, count in (("train", 30), ("test", 4)):
        rows = [{"id": number, "story": f"{split} story {number}"} for number in range(count)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (source / f"{split}.jsonl").write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "-c", PREPARE, str(source)], env=dict(os.environ), check=True, timeout=100)
    (home / "datasets" / "tiny").rename(home / "datasets" / "someone___tiny")  # as if it came from the Hub
    assert cached_info(HubName("someone/tiny")) is not None
    check_download(HubName("someone/tiny"), {})
    assert (identify("hf://someone/tiny").expected_bytes or 0) > 100

    for name, split, count in (("hf://someone/tiny", "train", 30), ("hf://someone/tiny:default:test", "test", 4)):
        corpus, counts = open_corpus(name, {}), RowCounts()
        texts = [piece.data.decode() for piece in corpus.pieces(counts)]
        assert texts == [f"{split} story {number}" for number in range(count)]
        assert corpus.column == "story" and counts.bad_rows == 0
    with pytest.raises(DatasetError, match="no split 'validation'") as caught:
        open_corpus("hf://someone/tiny:default:validation", {})
    assert "train, test" in caught.value.next_step
    with pytest.raises(DatasetError, match="downloads are off"):
        open_corpus("hf://someone/other", {})
