"""The key that the machines of a run share: made once, private, and taken from another machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import RankdeckError
from core.launch.nodes.key import KEY_FILE, key_file, make_key, read_key


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.launch.nodes.key.data_folder", lambda: tmp_path)


def test_the_key_is_made_once_and_kept_private() -> None:
    with pytest.raises(RankdeckError, match="There is no key"):
        read_key()
    key = make_key()
    assert (key, len(key)) == (make_key(), 64) and key_file().name == KEY_FILE
    if os.name == "posix":
        assert key_file().stat().st_mode & 0o077 == 0
    key_file().write_text("short", encoding="utf-8")
    with pytest.raises(RankdeckError, match="is damaged"):
        make_key()
