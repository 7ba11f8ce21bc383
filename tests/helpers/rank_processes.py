"""Bare ranks, without a host: several real processes of one module, each of which prints a line of JSON.

Where they can be, they are forked from a process that has imported torch (`forking`). Elsewhere each is a new Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from tests.helpers import bare_rank, forking

ROOT: Final = Path(__file__).resolve().parents[2]
LIMIT_S: Final = 240.0


class _Rank(Protocol):
    """A process that was started."""

    def kill(self) -> None: ...

    def ended(self, within_s: float) -> int | None:
        """Waits for its exit code; None when the time is over."""


def run_rank_processes(
    module: str, world: int, folder: Path, *arguments: str, dead: Sequence[int] = (), fresh: bool = False
) -> list[dict[str, Any]]:
    """Runs `python -m MODULE ARGUMENTS… RANK WORLD FOLDER` for every rank.

    Args:
        module: What a rank runs.
        world: How many ranks.
        folder: Theirs.
        arguments: What the module gets before the three.
        dead: Exit codes of the last ranks, which say nothing; all others are to end with 0.
        fresh: Each is a new Python in any case: something looks at the environment when it is imported.

    Returns:
        Each rank's last line, parsed; a rank that fails shows what it printed.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "workers" / "sdk")]),
        "OMP_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    start = _Forked if forking.can_fork() and not fresh else _Spawned
    with tempfile.TemporaryDirectory() as said:
        files = [Path(said) / str(rank) for rank in range(world)]
        ranks: list[_Rank] = [
            start(module, [*arguments, str(rank), str(world), str(folder)], environment, file)
            for rank, file in enumerate(files)
        ]
        deadline = time.monotonic() + LIMIT_S
        codes = []
        try:
            for rank in ranks:
                codes.append(rank.ended(max(0.1, deadline - time.monotonic())))
        finally:
            for rank in ranks:
                rank.kill()
        errors = [file.with_suffix(".err").read_text(encoding="utf-8", errors="replace") for file in files]
        assert codes == [0] * (world - len(dead)) + list(dead), "\n".join(errors)
        output = [file.with_suffix(".out").read_text(encoding="utf-8") for file in files[: world - len(dead)]]
    return [json.loads(text.splitlines()[-1]) for text in output]


class _Forked:
    """A child of the process that has imported torch."""

    def __init__(self, module: str, arguments: list[str], environment: dict[str, str], file: Path) -> None:
        self._process = forking.process(bare_rank.forked, module, arguments, environment, str(file))

    def ended(self, within_s: float) -> int | None:
        self._process.join(within_s)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()


class _Spawned:
    """A Python of its own."""

    def __init__(self, module: str, arguments: list[str], environment: dict[str, str], file: Path) -> None:
        command = [sys.executable, "-m", "tests.helpers.bare_rank", module, *arguments]
        with file.with_suffix(".out").open("wb") as out, file.with_suffix(".err").open("wb") as err:
            self._process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=out, stderr=err)

    def ended(self, within_s: float) -> int | None:
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
