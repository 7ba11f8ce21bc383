"""The flags of other machines and of a submitted run: what they ask for, and what is refused."""

from __future__ import annotations

import pytest

from core.cli.machine_flags import check_slurm_arguments
from core.cli.parser import parse
from core.errors import UsageError

pytestmark = pytest.mark.windows


def test_machines_lists_unless_something_else_is_asked_for() -> None:
    assert parse(["machines"]).action == "list"
    added = parse(["machines", "add", "gpubox", "me@gpubox.lan", "--port", "2222", "--json"])
    assert (added.action, added.name, added.address, added.port, added.json) == (
        "add", "gpubox", "me@gpubox.lan", 2222, True,
    )  # fmt: skip
    with pytest.raises(UsageError, match="no action 'ad'"):
        parse(["machines", "ad"])


@pytest.mark.parametrize("command", [["train", "--dataset-file", "x"], ["resume", "run"]])
def test_what_trains_can_do_so_elsewhere(command: list[str]) -> None:
    assert parse(command).machine is None
    assert parse([*command, "--machine", "gpubox"]).machine == "gpubox"


@pytest.mark.parametrize("words", [["--nodes", "2"], ["--gpus-per-node", "1"], ["--sbatch=--mem=1"]])
def test_flags_that_need_slurm(words: list[str]) -> None:
    with pytest.raises(UsageError, match="without --slurm"):
        check_slurm_arguments(parse(["train", *words]))


@pytest.mark.parametrize("words", [["--machine", "a"], ["--run-dir", "a"]])
def test_flags_that_contradict_it(words: list[str]) -> None:
    with pytest.raises(UsageError, match="are both given"):
        check_slurm_arguments(parse(["train", "--slurm", *words]))
