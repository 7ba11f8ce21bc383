"""A run's folder that goes away, and the space kept for its last words."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.files.atomic import remove_temporaries
from core.host.disk.folder_watch import folder_gone, until_gone
from core.host.disk.reserved_space import RESERVED_BYTES, ReservedSpace

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
