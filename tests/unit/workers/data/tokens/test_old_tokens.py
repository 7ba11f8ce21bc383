"""Tokens that were not used for a long time are removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from workers.data.tokens.token_cache import mark_used, remove_unused

DAY_S = 86_400.0


def made(cache: Path, name: str, age_days: float, finished: bool = True) -> Path:
    folder = cache / name
    folder.mkdir()
    (folder / "tokens.bin").write_bytes(b"x")
    marked = folder / "index.json" if finished else folder
    if finished:
        marked.touch()
    at = time.time() - age_days * DAY_S
    os.utime(marked, (at, at))
    return folder


def test_only_what_is_old_goes(tmp_path: Path) -> None:
    made(tmp_path, "old", 91)
    made(tmp_path, "used again", 91)
    made(tmp_path, "young", 89)
    made(tmp_path, "never finished", 91, finished=False)
    made(tmp_path, "being made", 1, finished=False)
    made(tmp_path, "half gone.removed", 0)
    (tmp_path / "a file").touch()
    os.utime(tmp_path / "a file", (0, 0))
    mark_used(tmp_path / "used again" / "index.json")
    remove_unused(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a file", "being made", "used again", "young"]


def test_a_missing_index_is_not_made(tmp_path: Path) -> None:
    mark_used(tmp_path / "absent.json")
    assert not (tmp_path / "absent.json").exists()
