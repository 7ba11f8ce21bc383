"""Which tests wait for the second tier, family by family: `bootstrap.py test` leaves them out, `test --all` does not.

A new test is of the first tier, but for one below `tests/training`: there `FIRST_IN_TRAINING` names the few that are. A
test that differs from its file is marked, `pytest.mark.first_tier` or `pytest.mark.second_tier`.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent
FIRST: Final = "first_tier"
SECOND: Final = "second_tier"
TIERS: Final = {
    FIRST: "runs at every push, and with `bootstrap.py test`",
    SECOND: "runs with `bootstrap.py test --all`",
}

# Folders and files below `tests`, by what they are about.
SECOND_TIER: Final[dict[str, tuple[str, ...]]] = {
    "other machines over SSH": ("runs/machines",),
    "launchers and Slurm": ("runs/launchers",),
    "installer": ("runs/installer", "unit/installer/windows/test_version_folder.py"),
    "environments made by pip": (
        "runs/core/environments",
        "runs/app/test_environment_in_window.py",
        "runs/app/test_install_in_window.py",
    ),
    "updates": ("runs/app/test_updates_in_window.py",),
    "GPUs": (
        "runs/app/test_gpus_in_window.py",
        "runs/core/machine/devices",
        "runs/core/machine/test_cpu_only_torch.py",
    ),
    "what scripts listen on": ("runs/end2end/test_script_listens.py",),
    "scripts that are silent, or copies of each other": (
        "runs/end2end/test_script_copies.py",
        "runs/end2end/test_script_hangs.py",
    ),
    "bad days and drives that fill up": ("runs/faults/test_bad_days.py", "runs/faults/test_small_disk.py"),
    "training of all kinds": ("training",),
}

# What of the training is in the first tier nevertheless.
FIRST_IN_TRAINING: Final[dict[str, tuple[str, ...]]] = {
    "every mode learns, stops and resumes bit by bit": (
        "training/workers/test_sharding.py",
        "training/workers/test_strategies.py",
        "training/workers/test_local_sgd.py",
        "training/workers/test_merge.py",
        "training/workers/test_fsdp_blocks.py",
        "training/workers/test_ballots.py",
    ),
    "through the command line and the window": (
        "training/end2end/test_cli_train.py",
        "training/end2end/test_window_trains.py",
    ),
    "a kill": ("training/end2end/test_kill_phases.py",),
    "the loop and what it saves": (
        "training/core/checkpoints",
        "training/core/export",
        "training/workers/state_files",
        "training/workers/test_measured.py",
        "training/workers/test_minigpt.py",
        "training/workers/test_optimization.py",
        "training/workers/test_whole_chunks.py",
        "training/workers/training/test_checkpoint.py",
        "training/workers/training/test_commits.py",
        "training/workers/training/test_step_start.py",
    ),
    "measured in this process": (
        "training/workers/measure/test_live_bytes.py",
        "training/workers/measure/test_process.py",
        "training/workers/measure/test_step_times.py",
    ),
}


def mark(items: list[pytest.Item]) -> None:
    """Marks each test with its tier, unless it is marked already."""
    for item in items:
        if not any(item.get_closest_marker(tier) for tier in TIERS):
            item.add_marker(tier_of(item.path))


def tier_of(path: Path) -> str:
    """The tier of a file's tests; a longer path in the tables beats a shorter one."""
    if TESTS not in path.parents:
        return FIRST
    inside = PurePosixPath(path.relative_to(TESTS).as_posix())
    found = [(entry, tier) for tier, entries in _tables() for entry in entries if inside.is_relative_to(entry)]
    return max(found, default=("", FIRST), key=lambda pair: len(pair[0]))[1]


def _tables() -> list[tuple[str, list[str]]]:
    return [
        (tier, [entry for entries in table.values() for entry in entries])
        for tier, table in ((SECOND, SECOND_TIER), (FIRST, FIRST_IN_TRAINING))
    ]


def summary(spent: dict[str, float], selected: str, left_out: int) -> str:
    """The line at the end: the tier, the time of each level, and what was left out.

    Args:
        spent: Seconds by level, added up over tests that ran side by side.
        selected: pytest's `-m`.
        left_out: How many tests of the second tier were not run.
    """
    tier = "first tier" if f"not {SECOND}" in selected else "both tiers"
    words = f"{tier}: " + ", ".join(f"{level} {seconds:.0f} s" for level, seconds in spent.items())
    return words + (f"; {left_out:,} tests of the second tier were not run" if left_out else "")
