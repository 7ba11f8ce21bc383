"""What of a model of the Hub would be fetched; `tests/training` fetches one from a server of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankdeck.recipe import ConfigError
from workers.recipes.hf_causal_lm.source import Source, local_folder, size_text, wanted_files


def test_unasked_nothing_is_downloaded() -> None:
    with pytest.raises(ConfigError, match="owner/name is not on this machine"):
        local_folder(Source("hub", "owner/name"), False, lambda _: None)


def test_sizes_are_those_of_what_is_fetched() -> None:
    files = [("model.safetensors", 5_000_000_000), ("config.json", 600), ("tf_model.h5", 7), ("pytorch_model.bin", 9)]
    assert wanted_files(files) == files[:2]
    assert (size_text(5_000_000_600), size_text(2_500_000)) == ("5.0 GB", "2.5 MB")


def test_a_copy_that_is_here_is_taken_unasked(tmp_path: Path) -> None:
    said: list[str] = []
    assert local_folder(Source("hub", "owner/name", folder=tmp_path), True, said.append) == tmp_path
    assert said == []
