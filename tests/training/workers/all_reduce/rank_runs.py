"""Starts real rank processes that exchange tensors (`exchange_rank`) and reads what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.helpers.rank_processes import run_rank_processes

ROOT: Final = Path(__file__).resolve().parents[4]


@contextmanager
def ranks(names: str, world: int, folder: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """So many processes, which are gone afterwards, however it ends."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    program = "tests.training.workers.all_reduce.exchange_rank"
    command = [sys.executable, "-m", "tests.helpers.bare_rank", program, names]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(world), str(folder)],
            env=environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for rank in range(world)
    ]
    try:
        yield started
    finally:
        for rank in started:
            if rank.poll() is None:
                rank.kill()
            rank.communicate()


def outcomes(names: str, world: int, folder: Path, dead: int = 0) -> list[dict[str, Any]]:
    """What each rank found by name, without those of the last `dead` ranks, which end with exit code 9."""
    return run_rank_processes("tests.training.workers.all_reduce.exchange_rank", world, folder, names, dead=[9] * dead)
