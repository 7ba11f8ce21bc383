"""A run's folder that goes away, the space kept for its last state, and how full a disk is."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from core.files.atomic import remove_temporaries
from core.host.watches.disk import (
    NAME,
    RESERVED_BYTES,
    DiskLevel,
    DiskSpace,
    ReservedSpace,
    until_gone,
)

MIB = 1 << 20
LEVELS = (DiskLevel.FULL, DiskLevel.LOW)


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


def test_a_stop_leaves_room_for_its_checkpoint_and_model_above_the_reserve() -> None:
    space = DiskSpace(reserve=500 * MIB, keep=3).measured(10_000 * MIB, 200 * MIB)
    assert space.level is DiskLevel.AMPLE
    assert [space.limit(level) // MIB for level in LEVELS] == [900, 1300]


def test_small_checkpoints_leave_a_warning_its_time() -> None:
    space = DiskSpace(reserve=400 * MIB, keep=3).measured(10_000 * MIB, MIB)
    assert [space.limit(level) // MIB for level in LEVELS] == [402, 602]


@pytest.mark.parametrize(
    ("free_mib", "level", "kept"),
    [(1300, DiskLevel.AMPLE, 3), (1299, DiskLevel.LOW, 1), (899, DiskLevel.FULL, 1)],
)
def test_levels(free_mib: int, level: DiskLevel, kept: int) -> None:
    space = DiskSpace(reserve=500 * MIB, keep=3).measured(free_mib * MIB, 200 * MIB)
    assert (space.level, space.kept) == (level, kept)


def test_removing_old_checkpoints_does_not_bring_them_back() -> None:
    low = DiskSpace(reserve=500 * MIB, keep=3).measured(1200 * MIB, 200 * MIB)
    after = low.measured(1800 * MIB, 200 * MIB)
    assert after.level is DiskLevel.LOW
    assert after.measured(1900 * MIB, 200 * MIB).level is DiskLevel.AMPLE


def test_the_largest_checkpoint_counts() -> None:
    space = DiskSpace(reserve=0, keep=3).measured(10_000 * MIB, 200 * MIB).measured(10_000 * MIB, 100 * MIB)
    assert space.checkpoint == 200 * MIB


@pytest.mark.parametrize("free_mib", [1299, 899])
def test_each_level_says_cause_and_next_step(free_mib: int) -> None:
    alert = DiskSpace(reserve=500 * MIB, keep=3).measured(free_mib * MIB, 200 * MIB).alert("runs/a")
    assert alert["title"] and alert["cause"].startswith("The drive of runs/a has ") and alert["next_step"].endswith(".")
    assert "--" not in alert.get("window_step", alert["next_step"])
    assert alert["kind"] in ("disk_low", "disk_full")
