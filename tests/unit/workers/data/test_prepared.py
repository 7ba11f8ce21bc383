"""A run's data folder: what is kept elsewhere may go, but must come back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import DatasetError
from workers.data.prepared import DATA_JSON, PreparedData, prepare

KEY = {"dataset_file": "rows.csv"}


def made(documents: int) -> PreparedData:
    return PreparedData(9, 1, {"documents": documents, "tokens": 300})


def test_data_that_is_read_otherwise_is_refused(tmp_path: Path) -> None:
    assert prepare(tmp_path, lambda _: made(40), KEY).samples == 9
    before = (tmp_path / DATA_JSON).read_bytes()
    for _ in range(2):  # the next attempt must not take what the first one refused
        with pytest.raises(
            DatasetError, match=r"as 40 documents, 300 tokens, 9 samples\. .* as 39 documents"
        ) as caught:
            prepare(tmp_path, lambda _: made(39), KEY, lambda _: False)
        assert caught.value.title == "The data is read differently now"
        assert (tmp_path / DATA_JSON).read_bytes() == before
    assert prepare(tmp_path, lambda _: made(40), KEY, lambda _: False).samples == 9
    assert prepare(tmp_path, lambda _: made(39), {**KEY, "seq_len": 8}).info["documents"] == 39


def test_a_folder_built_with_other_settings_is_left(tmp_path: Path) -> None:
    prepare(tmp_path, lambda _: made(40), KEY)

    def fails(folder: Path) -> PreparedData:
        assert not (folder / DATA_JSON).exists()
        raise DatasetError("It is empty.", "Choose another.")

    with pytest.raises(DatasetError, match="empty"):
        prepare(tmp_path, fails, {**KEY, "seq_len": 8})
