"""Bare ranks, without a host: several real processes of one module, each of which prints a line of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 200.0


def run_rank_processes(module: str, world: int, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Runs `python -m MODULE ARGUMENTS… RANK WORLD FOLDER` for every rank.

    Returns:
        Each rank's last line, parsed; a rank that fails shows what it printed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.bare_rank", module, *arguments, str(rank), str(world), str(folder)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    deadline = time.monotonic() + LIMIT_S
    try:
        outcomes = [rank.communicate(timeout=max(0.1, deadline - time.monotonic())) for rank in ranks]
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
                rank.communicate()
    assert [rank.returncode for rank in ranks] == [0] * world, "\n".join(errors for _, errors in outcomes)
    return [json.loads(output.splitlines()[-1]) for output, _ in outcomes]
