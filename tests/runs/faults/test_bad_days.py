"""A user's bad day: kills at any moment, a folder that is emptied, files that are damaged, strangers on the socket.

Whatever happens, nothing committed is lost, the end comes within bounds, and one message says what to do.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from core.cli import main
from core.client import resume_run
from core.errors import RunBusyError, StateFileError
from core.resume.planner import plan_resume
from tests.helpers.host_fixture import FINISHED, STOPPED, FakeRun, MakeRun

pytestmark = [pytest.mark.windows, pytest.mark.timeout(180)]

KILLS = 3


def kill_something(run: FakeRun, rng: random.Random) -> None:
    """Kills the host or a rank, a moment after the attempt has begun, and waits until everything has ended."""
    run.wait(lambda state: state.host is not None or not state.is_live)
    time.sleep(rng.uniform(0.0, 0.8))
    with contextlib.suppress(psutil.Error):  # it has ended by itself just now
        host = run.store.stored_state().host
        ranks = run.ranks()
        if ranks and rng.random() < 0.5:
            rng.choice(ranks).kill()
        elif host is not None:
            psutil.Process(host.pid).kill()
    run.end()
    psutil.wait_procs(run.ranks(), timeout=10)


@pytest.mark.spawned
@pytest.mark.parametrize("mode", ["ddp", pytest.param("independent", marks=pytest.mark.second_tier)])
def test_killed_at_any_moment_again_and_again_it_ends_in_the_same_weights(make_run: MakeRun, mode: str) -> None:
    script: dict[str, Any] = {"steps": 300, "step_s": 0.004, "samples": 3_000, "commit_every": 7}
    straight = make_run(mode=mode, strict=True).behave(**script).start()
    broken = make_run(mode=mode, strict=True).behave(**script).start()
    rng, kept = random.Random(11), 0
    for _ in range(KILLS):
        kill_something(broken, rng)
        newest = max(broken.checkpoints(), default=0)
        assert newest >= kept, "a committed checkpoint was lost"
        kept = newest
        if broken.store.state().state == FINISHED:
            break
        broken.resume()
    assert broken.end().state == straight.end().state == FINISHED
    assert broken.weights() == straight.weights()
    assert broken.completed() == straight.completed()


def test_a_folder_that_is_emptied_ends_its_run_and_does_not_come_back(make_run: MakeRun) -> None:
    if sys.platform == "win32":
        pytest.skip("Windows removes no folder with open files in it")
    run = make_run().behave(steps=100_000, commit_every=20, step_s=0.01).start()
    run.wait_for_event("commit")
    processes = [run.host, *run.ranks()]
    while run.run_dir.exists():  # the host writes into it while it is being emptied
        shutil.rmtree(run.run_dir, ignore_errors=True)
    _, alive = psutil.wait_procs(processes, timeout=40)
    assert not alive
    assert not run.run_dir.exists()


def test_a_rank_that_stands_still_for_a_while_costs_only_time(make_run: MakeRun) -> None:
    run = make_run().behave(steps=60, commit_every=10, step_s=0.05).start()
    run.wait_for_step(5)
    rank = run.ranks()[-1]
    rank.suspend()
    time.sleep(2.0)
    rank.resume()
    state = run.end()
    assert (state.state, state.exit_code) == (FINISHED, 0)
    assert run.steps(0) == run.steps(1) == list(range(1, 61))


# who asks at the same moment


def test_of_two_resumes_at_one_moment_one_is_refused(make_run: MakeRun) -> None:
    run = make_run().behave(steps=60, commit_every=10, step_s=0.05).start()
    run.wait_for_event("commit")
    run.kill_host()
    plans = [plan_resume(str(run.run_dir), run.run_dir.parent, accept_code=True) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        errors = [future.exception() for future in [pool.submit(resume_run, plan) for plan in plans]]
    assert sorted(type(error).__name__ for error in errors) == ["NoneType", "RunBusyError", "RunBusyError"]
    assert all(isinstance(error, RunBusyError) and error.next_step for error in errors if error is not None)
    assert run.end().state == FINISHED
    assert [line["attempt"] for line in run.events("launch")] == [1, 2]


def test_two_polite_stops_lose_nothing(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, step_s=0.02, commit_s=0.3).start()
    run.wait_for_step(5)
    run.stop().stop()
    state = run.end()
    assert (state.state, state.exit_code, state.error) == (STOPPED, 0, None)
    assert run.events("commit")[-1]["step"] == run.steps()[-1]


def test_stop_says_when_not_everything_was_committed(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(stop_timeout_s=1.0).behave(steps=100_000, step_s=0.01, hang_at="stop").start()
    run.wait_for_step(3)
    assert main(["stop", str(run.run_dir)]) == 1
    title, cause, next_step = capsys.readouterr().err.splitlines()[-3:]
    assert title == "Stopped without a last checkpoint" and "at the stop limit" in cause and next_step
    assert run.end().state == STOPPED


def test_a_run_with_nothing_left_to_train_still_says_where_it_stands(make_run: MakeRun) -> None:
    run = make_run().behave(steps=20).fail_at(rank=1, step="finish", fail_attempts=[1]).start()
    run.end()
    assert run.resume().end().step == 20


# files that are damaged between two attempts


@pytest.fixture
def stopped(make_run: MakeRun) -> Iterator[FakeRun]:
    """A run that has committed three checkpoints of its 60 steps and may go on to 80."""
    run = make_run(steps=60).behave(steps=60, commit_every=20, step_s=0.002).start()
    assert run.end().state == FINISHED
    run.behave(steps=80)
    yield run


def test_without_any_checkpoint_it_does_not_begin_anew_unasked(stopped: FakeRun) -> None:
    shutil.rmtree(stopped.store.checkpoints)
    with pytest.raises(StateFileError, match="though it was committed") as caught:
        stopped.resume(steps=80)
    assert caught.value.exit_code == 2
    assert stopped.store.state().state == FINISHED


# the disk


def test_one_full_disk_is_one_alert_whichever_rank_meets_it(make_run: MakeRun) -> None:
    run = make_run().behave(steps=60, commit_every=5, step_s=0.01, failing_commits=2).start()
    assert run.end().state == FINISHED
    assert len(run.events("alert")) == 1
    assert run.checkpoints()


def test_a_stop_that_cannot_commit_says_why(make_run: MakeRun) -> None:
    run = make_run(stop_timeout_s=2.0).behave(steps=100_000, step_s=0.01, failing_commits=1_000).start()
    run.wait_for_step(3)
    state = run.stop().end()
    assert (state.state, state.exit_code) == (STOPPED, 1)
    assert state.error is not None and "could not write its part: The disk is full" in state.error["cause"]


# the socket


def hello(token: str, **fields: object) -> bytes:
    value = {"type": "hello", "protocol": 1, "role": "client", "token": token, "pid": 1, **fields}
    return json.dumps(value).encode() + b"\n"
