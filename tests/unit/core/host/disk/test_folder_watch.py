"""A run's folder that goes away."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.host.disk.folder_watch import folder_gone, until_gone

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
