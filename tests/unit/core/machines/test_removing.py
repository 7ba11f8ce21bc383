"""What removing a machine, and what was sent there, says before."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.machines.machine import Machine
from core.machines.removing import CleanUp, plan_removal
from core.processes import identity
from core.run_folder.remote_run import RemoteRun, write_remote
from tests.helpers.made_runs import TEXT, make_run


def test_runs_that_train_there_are_named(tmp_path: Path, runs_dir: Path) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT)
    ended, live, back = (make_run(tmp_path, runs_dir=runs_dir) for _ in range(3))
    for store in (ended, live, back):
        write_remote(store.dir, RemoteRun("Box", "/there", is_there=store is not back))
    removal = plan_removal(Machine("box", "me@host"), runs_dir)
    assert (removal.runs, removal.live) == (2, ()) and "copies of 2 runs" in removal.stays_text
    live.write_state(live.stored_state().replace(state="training", host=identity.own()))
    removal = plan_removal(Machine("box", "me@host"), runs_dir)
    assert len(removal.live) == 1 and "trains there. It continues there" in removal.live_text
    assert plan_removal(Machine("other", "me@host"), runs_dir).runs == 0


@pytest.mark.parametrize(
    ("found", "removed", "text"),
    [
        (CleanUp(0, 0, 0, 0), False, "box: nothing of what was sent can be removed."),
        (CleanUp(1, 2, 3_000_000, 0), False, "can be removed: no run there needs it (1 folder, 2 files)."),
        (CleanUp(2, 0, 10, 4_000_000), True, "was removed (2 folders, 0 files). 4"),
    ],
)
def test_sizes_are_said(found: CleanUp, removed: bool, text: str) -> None:
    assert text in found.text("box", removed=removed)
