"""Removal of a machine from the list: the runs that train there are named before."""

from __future__ import annotations

from pathlib import Path

from core.machines.machine import Machine
from core.machines.machine_list import warn_of_live_runs
from core.processes import identity
from core.run_folder.remote_run import RemoteRun, write_remote
from tests.helpers.made_runs import TEXT, make_run


def test_runs_that_train_there_are_named(tmp_path: Path, runs_dir: Path) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT)
    live, back = (make_run(tmp_path, runs_dir=runs_dir) for _ in range(2))
    for store in (live, back):
        write_remote(store.dir, RemoteRun("Box", "/there", is_there=store is live))
    assert warn_of_live_runs(Machine("box", "me@host"), runs_dir) == ""
    for store in (live, back):
        store.write_state(store.stored_state().replace(state="training", host=identity.own()))
    assert warn_of_live_runs(Machine("box", "me@host"), runs_dir).startswith("Still training there: ")
    assert " and " not in warn_of_live_runs(Machine("box", "me@host"), runs_dir).partition(".")[0]
    assert warn_of_live_runs(Machine("other", "me@host"), runs_dir) == ""
