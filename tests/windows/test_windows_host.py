"""The run host where Windows differs: the Job Object, files that others hold open, paths, no signals to catch."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from tests.helpers.host_fixture import FINISHED, STOPPED, MakeRun

pytestmark = pytest.mark.windows

SCANNER = """
import sys
while True:
    for path in sys.argv[1:]:
        try:
            with open(path, "rb") as file:
                file.read()
        except OSError:
            pass
"""


@pytest.mark.spawned  # a forked host has no launcher, which ends them
def test_ranks_and_their_children_die_with_a_killed_host(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, step_s=0.01, ignore_eof=True, grandchild=True).start()
    run.wait_for_step(3)
    family = run.ranks()
    assert len(family) >= 4  # two ranks, and a process that each has started
    run.kill_host()
    _, alive = psutil.wait_procs(family, timeout=5.0)
    assert not alive
    assert run.store.state().state == "interrupted"
    run.behave(steps=20, step_s=0.0, grandchild=False)
    assert run.resume().end().state == FINISHED


def test_files_that_another_program_reads_do_not_stop_a_run(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, commit_every=5, step_s=0.01).start()
    run.wait_for_event("commit")
    # What a virus scanner or a backup does: opens a file again and again while the host replaces it.
    scanned = [str(path) for path in (run.store.state_json, run.store.ledger, run.store.metrics)]
    scanner = subprocess.Popen([sys.executable, "-c", SCANNER, *scanned])
    try:
        run.wait_for_event("commit", 5)
        state = run.stop().end()
    finally:
        scanner.kill()
        scanner.wait()
    assert (state.state, state.exit_code, state.error) == (STOPPED, 0, None)
    assert run.ledger()["checkpoint"] == run.checkpoints()[-1]


def test_the_lock_falls_with_its_host(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, step_s=0.01).start()
    run.wait_for_step(2)
    assert run.store.is_locked()
    run.kill_host()
    assert not run.store.is_locked()
    with run.store.lock():
        assert run.store.is_locked()
