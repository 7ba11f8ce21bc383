"""Ranks without a host: real processes of `tests.training.rank_program`, each of which runs a test's scenario.

Where they can be, they are forked from a process that has imported torch (`forking`). Elsewhere each is a new Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.helpers.forking import ROOT, TORCH, Spawned, StartedProcess, can_fork, fork
from tests.helpers.wine import PATIENCE

LIMIT_S: Final = 240.0 * PATIENCE


def run_ranks(
    scenario: Callable[..., object],
    world: int,
    folder: Path,
    *arguments: object,
    dead: Sequence[int] = (),
    fresh: bool = False,
) -> list[dict[str, Any]]:
    """Runs a scenario in every rank.

    Args:
        scenario: A function at the top of a module: it gets a `rank_program.BareRank` and the arguments.
        world: How many ranks.
        folder: Theirs.
        arguments: What JSON can hold.
        dead: Exit codes of the last ranks, which have no result; all others are to end with 0.
        fresh: Each is a new Python in any case: something looks at the environment when it is imported.

    Returns:
        Each rank's result; if one fails, the test fails with what it printed.
    """
    with tempfile.TemporaryDirectory() as place:
        files = [Path(place) / str(rank) for rank in range(world)]
        with started_ranks(scenario, files, folder, *arguments, fresh=fresh) as ranks:
            deadline = time.monotonic() + LIMIT_S
            codes = [rank.ended(max(0.1, deadline - time.monotonic())) for rank in ranks]
        errors = [file.with_suffix(".err").read_text(encoding="utf-8", errors="replace") for file in files]
        assert codes == [0] * (world - len(dead)) + list(dead), "\n".join(errors)
        living = files[: world - len(dead)]
        return [json.loads(file.with_suffix(".json").read_text(encoding="utf-8")) for file in living]


@contextmanager
def started_ranks(
    scenario: Callable[..., object], files: Sequence[Path], folder: Path, *arguments: object, fresh: bool = False
) -> Iterator[list[StartedProcess]]:
    """Starts a rank for each file, as `run_ranks`, and kills what is left of them.

    Args:
        scenario: As `run_ranks` takes it.
        files: Each rank's: .json gets its result, .out and .err what it prints.
        folder: As `run_ranks` takes it.
        arguments: As `run_ranks` takes them.
        fresh: As `run_ranks` takes it.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "workers" / "sdk")]),
        "OMP_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    start = _spawn if fresh or not can_fork() else _fork
    name = f"{scenario.__module__}:{scenario.__qualname__}"
    ranks: list[StartedProcess] = []
    try:
        for rank, file in enumerate(files):
            argv = [name, str(rank), str(len(files)), str(folder), json.dumps(arguments), str(file)]
            ranks.append(start(argv, environment, str(file)))
        yield ranks
    finally:
        for process in ranks:
            process.kill()


def _fork(argv: list[str], environment: dict[str, str], file: str) -> StartedProcess:
    return fork(TORCH, _become_rank, argv, environment, file)


def _become_rank(argv: list[str], environment: dict[str, str], file: str) -> None:
    for stream, suffix in ((1, ".out"), (2, ".err")):
        target = os.open(Path(file).with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, stream)
        os.close(target)
    os.environ.clear()
    os.environ.update(environment)
    from tests.training.rank_program import main

    main(*argv)


def _spawn(argv: list[str], environment: dict[str, str], file: str) -> StartedProcess:
    command = [sys.executable, "-m", "tests.training.rank_program", *argv]
    with Path(file).with_suffix(".out").open("wb") as out, Path(file).with_suffix(".err").open("wb") as err:
        return Spawned(subprocess.Popen(command, env=environment, cwd=ROOT, stdout=out, stderr=err))
