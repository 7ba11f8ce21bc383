"""The commands of docs/launchers.md, run as they stand, in a folder with the data that they name."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.run_folder.store import RunStore, list_runs
from tests.helpers.host_fixture import FINISHED
from tests.helpers.launched import MPI_VARIABLES, ROOT, Job, has
from tests.helpers.slurm import cluster, why_not

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="torchrun does not work on Windows"),
]
Start = Callable[..., Job]
PAGE = (ROOT / "docs" / "launchers.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(?:torchrun|mpirun|srun) (?!--nnodes).*(?:rankdeck|-m core) .*$", PAGE, re.MULTILINE)


@pytest.fixture
def variables(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """With the environment's programs on the path; with a cluster for srun."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = request.node.callspec.params["command"]
    if not command.startswith("srun"):
        yield {**MPI_VARIABLES, "PATH": path}
        return
    if why_not():
        pytest.skip(why_not())
    with cluster() as found:
        yield {**found, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{found['PATH']}"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_trains(
    command: str, start: Start, tmp_path: Path, runs_dir: Path, variables: dict[str, str]
) -> None:
    words = command.split()
    for program in (words[0], *({"rankdeck"} & {*words})):
        if not has(program) and not (Path(sys.executable).parent / program).exists():
            pytest.skip(f"{program} is not installed")
    (tmp_path / "books").mkdir()
    text = "It was the best of times, it was the worst of times.\n" * 400
    (tmp_path / "books" / "one.txt").write_text(text, encoding="utf-8", newline="\n")
    small = ["--set", "n_layer=1", "--set", "n_embd=32", "--batch-size", "2", "--seq-len", "32"]
    job = start([*words, *small], variables)
    assert job.end() == 0, job.output
    (entry,) = list_runs(runs_dir)
    state = RunStore(entry.path).state()
    assert (state.state, state.step, state.world_size) == (FINISHED, 200, 2)


def test_there_are_commands() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"torchrun", "mpirun", "srun"}
