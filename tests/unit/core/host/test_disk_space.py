"""How full a disk is: where each level begins, and when it ends."""

from __future__ import annotations

import pytest

from core.host.disk_space import DiskLevel, DiskSpace

pytestmark = pytest.mark.windows

MIB = 1 << 20
LEVELS = (DiskLevel.FULL, DiskLevel.LOW, DiskLevel.TIGHT)


def test_a_stop_leaves_room_for_its_checkpoint_and_model_above_the_reserve() -> None:
    space = DiskSpace(reserve=500 * MIB, keep=3).measured(10_000 * MIB, 200 * MIB)
    assert space.level is DiskLevel.AMPLE
    assert [space.limit(level) // MIB for level in LEVELS] == [
        900,
        1100,
        1300,
    ]


def test_small_checkpoints_leave_a_warning_its_time() -> None:
    space = DiskSpace(reserve=400 * MIB, keep=3).measured(10_000 * MIB, MIB)
    assert [space.limit(level) // MIB for level in LEVELS] == [402, 502, 602]


@pytest.mark.parametrize(
    ("free_mib", "level", "kept"),
    [(1300, DiskLevel.AMPLE, 3), (1299, DiskLevel.TIGHT, 1), (1099, DiskLevel.LOW, 1), (899, DiskLevel.FULL, 1)],
)
def test_levels(free_mib: int, level: DiskLevel, kept: int) -> None:
    space = DiskSpace(reserve=500 * MIB, keep=3).measured(free_mib * MIB, 200 * MIB)
    assert (space.level, space.kept) == (level, kept)


def test_removing_old_checkpoints_does_not_bring_them_back() -> None:
    tight = DiskSpace(reserve=500 * MIB, keep=3).measured(1200 * MIB, 200 * MIB)
    after = tight.measured(1800 * MIB, 200 * MIB)
    assert after.level is DiskLevel.TIGHT
    assert after.measured(1900 * MIB, 200 * MIB).level is DiskLevel.AMPLE


def test_the_largest_checkpoint_counts() -> None:
    space = DiskSpace(reserve=0, keep=3).measured(10_000 * MIB, 200 * MIB).measured(10_000 * MIB, 100 * MIB)
    assert space.checkpoint == 200 * MIB


@pytest.mark.parametrize("free_mib", [1299, 1099, 899])
def test_each_level_says_cause_and_next_step(free_mib: int) -> None:
    alert = DiskSpace(reserve=500 * MIB, keep=3).measured(free_mib * MIB, 200 * MIB).alert("runs/a")
    assert alert["title"] and alert["cause"].startswith("The drive of runs/a has ") and alert["next_step"].endswith(".")
    assert "--" not in alert.get("window_step", alert["next_step"])
    assert alert["kind"] in ("disk_tight", "disk_low", "disk_full")
