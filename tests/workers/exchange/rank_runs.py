"""Starts real rank processes that exchange tensors (`exchange_rank`) and reads what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[3]
LIMIT_S: Final = 240.0


@contextmanager
def ranks(names: str, world: int, folder: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """So many processes, which are gone afterwards, however it ends."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "tests.helpers.bare_rank", "tests.workers.exchange.exchange_rank", names]
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
    deadline = time.monotonic() + LIMIT_S
    with ranks(names, world, folder) as started:
        said = [rank.communicate(timeout=max(0.1, deadline - time.monotonic())) for rank in started]
        codes = [rank.returncode for rank in started]
    assert codes == [0] * (world - dead) + [9] * dead, "\n".join(errors for _, errors in said)
    return [json.loads(output.splitlines()[-1]) for output, _ in said[: world - dead]]
