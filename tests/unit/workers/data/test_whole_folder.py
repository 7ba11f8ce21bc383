"""Folders that are put in place whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.held_file import WINDOWS_ONLY, hold_for
from workers.data.prepared import whole_folder

pytestmark = pytest.mark.windows


def test_a_folder_is_there_when_all_of_it_is_written(tmp_path: Path) -> None:
    target = tmp_path / "data" / "größe"
    with pytest.raises(ZeroDivisionError), whole_folder(target) as part:
        (part / "half").write_bytes(b"1")
        raise ZeroDivisionError
    assert not target.exists()
    with whole_folder(target) as part:
        (part / "whole").write_bytes(b"2")
        assert not target.exists()
    assert [path.name for path in target.iterdir()] == ["whole"] and list(target.parent.iterdir()) == [target]


@WINDOWS_ONLY
def test_a_file_in_it_that_a_scanner_holds_is_waited_for(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "kept") as part:
        (part / "tokenizer.json").write_bytes(b"{}")
        timer = hold_for(part / "tokenizer.json", 0.5)
    timer.join()
    assert (tmp_path / "kept" / "tokenizer.json").read_bytes() == b"{}"
