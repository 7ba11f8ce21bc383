"""What `state.json` says while a run waits for a lost machine, and what ends the wait."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.cli.interrupts import counted_interrupts
from core.cli.node_return import ReturnWait
from core.client import stop_run
from core.config import RunConfig
from core.errors import RankdeckError, RunBusyError
from core.processes.identity import ProcessId, own
from core.resume.planner import plan_resume
from core.run_folder.store import RunStore

LOST = {"title": "CPU 1 exited", "cause": "It was lost.", "next_step": "Resume it."}


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """A run whose host has ended because a machine was lost, and which this process continues."""
    made = RunStore.create(tmp_path, RunConfig())
    made.write_state(made.stored_state().replace(host=own(), between_hosts=True, error=LOST))
    return made


def _wait(store: RunStore, lost: list[str], limit_s: float = 600.0) -> ReturnWait:
    return ReturnWait(lambda: lost, "2:2", limit_s, lambda: store)


def _look_until(wait: ReturnWait, reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20.0
    while not reached():
        assert time.monotonic() < deadline
        wait.look()
        time.sleep(0.05)


def test_it_says_for_whom_it_waits(store: RunStore) -> None:
    wait = _wait(store, ["node2"])
    _look_until(wait, lambda: store.state().phase.startswith("waiting for"))
    state = store.state()
    assert state.phase == "waiting for node2" and state.trouble is not None
    assert "It waits for node2 up to 10 m 00 s" in state.trouble["cause"]
    assert state.is_live and state.is_continued_by(own()) and state.error == LOST, "as the host left it"


@pytest.mark.skipif(sys.platform == "win32", reason="no Windows machine is part of a run on several")
def test_stop_ends_the_command_that_waits_and_the_run_is_stopped(store: RunStore) -> None:
    wait = _wait(store, ["node2"])
    _look_until(wait, lambda: store.state().phase.startswith("waiting for"))
    with counted_interrupts() as interrupts:
        stop_run(store)
        assert interrupts.count == 1
    wait.close(is_stopped=True)
    assert (store.state().state, store.state().error) == ("stopped", None)


def test_it_gives_up_after_its_limit(store: RunStore) -> None:
    wait = _wait(store, ["node2", "node3"], limit_s=1.0)
    with pytest.raises(RankdeckError) as caught:
        _look_until(wait, lambda: False)
    assert caught.value.title == "A machine did not come back"
    assert caught.value.cause.startswith("node2 and node3 did not come back within 1 s")
    wait.close(is_stopped=False, error=caught.value)
    assert store.state().state == "failed" and store.state().error == caught.value.as_dict()


def test_a_run_that_has_ended_meanwhile_is_left_alone(store: RunStore) -> None:
    store.write_state(store.stored_state().ended("finished"))
    wait = _wait(store, ["node2"])
    asked = []

    def looked_often() -> bool:
        asked.append(1)
        return len(asked) > 20

    _look_until(wait, looked_often)
    wait.close(is_stopped=False)
    assert store.state().state == "finished"


def test_a_run_that_no_other_host_continues_has_failed_as_its_last_host_did(store: RunStore) -> None:
    wait = _wait(store, [])
    wait.close(is_stopped=False)
    state = store.state()
    assert (state.state, state.error, state.exit_code, state.between_hosts) == ("failed", LOST, 1, False)


def test_a_run_between_two_hosts_is_resumed_by_processes_of_its_command_alone(store: RunStore) -> None:
    with pytest.raises(RunBusyError):
        plan_resume(str(store.dir), store.dir.parent)
    with pytest.raises(RunBusyError):
        plan_resume(str(store.dir), store.dir.parent, continues_for=ProcessId(own().pid, own().started - 60.0))
    assert plan_resume(str(store.dir), store.dir.parent, continues_for=own()).run_dir == store.dir


def test_a_command_that_is_gone_leaves_an_interrupted_run(store: RunStore) -> None:
    gone = ProcessId(own().pid, own().started - 3600.0)
    store.write_state(store.stored_state().replace(host=gone))
    assert store.state().state == "interrupted"
