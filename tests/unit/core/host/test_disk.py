"""A run's folder that goes away, and the space that is kept for its last state."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from core.files.atomic import remove_temporaries
from core.host.disk import NAME, RESERVED_BYTES, ReservedSpace, folder_gone, until_gone

pytestmark = pytest.mark.windows


def test_it_returns_when_the_path_is_gone_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("", encoding="utf-8")

    async def watch() -> bool:
        watching = asyncio.create_task(until_gone(path, limit_s=0.05))
        await asyncio.sleep(0.3)
        early = watching.done()
        path.unlink()
        await asyncio.wait_for(watching, 10)
        return early

    assert asyncio.run(watch()) is False


def test_the_words_name_the_folder(tmp_path: Path) -> None:
    words = folder_gone(tmp_path)
    assert str(tmp_path) in words["cause"] and words.keys() == {"title", "cause", "next_step"}


def test_the_reserve_is_real_space_that_is_given_back(tmp_path: Path) -> None:
    reserved = ReservedSpace(tmp_path)
    (held,) = tmp_path.iterdir()
    assert held.stat().st_size == RESERVED_BYTES
    reserved.release()
    reserved.release()
    assert not list(tmp_path.iterdir())


def test_a_killed_hosts_reserve_is_cleared_away_by_the_next(tmp_path: Path) -> None:
    ReservedSpace(tmp_path)
    remove_temporaries(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_without_space_for_it_stops_nothing(tmp_path: Path) -> None:
    ReservedSpace(tmp_path / "missing").release()
    assert not (tmp_path / "missing").exists()


def test_space_that_cannot_be_freed_is_told_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    reserved = ReservedSpace(tmp_path)
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).mkdir()  # no file system lets a folder be removed as a file is
    with caplog.at_level(logging.WARNING):
        reserved.release()
    assert "could not be freed" in caplog.text
