"""Ranks that hang, or whose processes are suspended: who is named, and what a run does about it."""

from __future__ import annotations

import sys

import psutil
import pytest

from tests.helpers.host_fixture import FAILED, FINISHED, STOPPED, FakeRun, MakeRun
from tests.helpers.wine import not_under_wine

windows = pytest.mark.windows  # not those that restart: a start of two ranks takes 15 s under Wine
LIMIT_S = 2.0


def suspend(run: FakeRun, rank: int) -> psutil.Process:
    """Suspends a rank's process (SIGSTOP)."""
    named = f"rank {rank} is process "
    line = next(line for line in run.log().splitlines() if named in line)
    process = psutil.Process(int(line.partition(named)[2].split()[0]))
    process.suspend()
    return process


@windows
def test_a_rank_that_hangs_is_named_while_the_other_goes_on(make_run: MakeRun) -> None:
    run = make_run(mode="independent", merge_policy="none", hang_timeout_s=LIMIT_S)
    run.behave(steps=100_000, step_s=0.01).hang_at(1, 30).start()
    (alert,) = run.wait_for_event("alert")
    assert (alert["kind"], alert["title"], alert["ranks"]) == ("hang", "CPU 1 may hang", [1])
    assert "CPU 1 (step 30)" in alert["cause"] and "fake_behaviour.py" in alert["cause"], alert
    assert "fake_behaviour.py" in run.log(), "the stack of the rank that hangs is in its log"
    assert run.wait(lambda state: bool(state.phase)).phase == "CPU 1 may hang: see Alerts"
    run.wait_for_step(max(run.steps(0)) + 20)  # nothing was ended
    state = run.stop(now=True).end()
    assert (state.state, state.exit_code) == (STOPPED, 130)


@not_under_wine("does not tell that a process is suspended")
def test_a_run_continues_once_the_rank_does(make_run: MakeRun) -> None:
    run = make_run(hang_timeout_s=LIMIT_S).behave(steps=100_000, step_s=0.01).start().wait_for_step(5)
    suspended = suspend(run, 1)
    (alert,) = run.wait_for_event("alert")
    assert (alert["ranks"], alert["certain"]) == ([1], True) and "is stopped" in alert["places"]["1"]
    assert alert["title"] == "CPU 1 holds up the other devices"
    suspended.resume()
    run.wait(lambda state: not state.phase)
    (over,) = run.wait_for_event("alert_over")
    assert over["kind"] == "hang" and alert["step"] >= 5
    run.wait_for_step(max(run.steps(0)) + 20)
    assert run.stop().end().state == STOPPED


@pytest.mark.parametrize("mode", ["ddp", "independent"])
def test_a_restart_ends_in_the_same_weights(make_run: MakeRun, mode: str) -> None:
    run = make_run(mode=mode, strict=True, hang_timeout_s=LIMIT_S, hang_policy="restart")
    run.behave(steps=60, commit_every=10, step_s=0.02).behave(1, hang_at=35, fail_attempts=[1]).start()
    state = run.end()
    assert (state.state, state.error) == (FINISHED, None)
    restart, *_ = run.events("restart")  # on a crowded machine a rank may be late once more
    assert (restart["number"], restart["of"]) == (1, 3) and restart["title"].endswith("The process hangs")
    straight = make_run(mode=mode).behave(steps=60, step_s=0).start()
    assert straight.end().state == FINISHED
    assert run.weights() == straight.weights() and run.completed() == straight.completed()


@pytest.mark.second_tier
def test_what_hangs_again_and_again_fails(make_run: MakeRun) -> None:
    run = make_run(strict=True, hang_timeout_s=LIMIT_S, hang_policy="restart").behave(steps=60, step_s=0.01)
    state = run.hang_at(1, 5).start().end()
    assert (state.state, state.attempt) == (FAILED, 4)
    assert [line["number"] for line in run.events("restart")] == [1, 2, 3]


@windows
def test_a_stop_saves_what_the_other_has_learned(make_run: MakeRun) -> None:
    run = make_run(mode="independent", merge_policy="none", hang_timeout_s=LIMIT_S, hang_policy="stop", max_restarts=2)
    run.behave(steps=100_000, step_s=0.01, commit_every=20).hang_at(1, 30).start()
    state = run.end()
    assert (state.state, state.exit_code, state.attempt) == (FAILED, 1, 1)
    assert state.error is not None and state.error["title"] == "CPU 1: The process hangs"
    assert "logs/rank1.log" in state.error["next_step"] and "continues from checkpoint" in state.error["next_step"]
    assert run.events("commit")[-1]["step"] > 30, "the newest checkpoint holds what rank 0 did while rank 1 hung"


@not_under_wine("does not tell that a process is suspended")
def test_a_stop_by_a_person_is_no_hang(make_run: MakeRun) -> None:
    run = make_run(hang_timeout_s=LIMIT_S, hang_policy="stop", stop_timeout_s=4.0).behave(1, hang_at="stop")
    run.behave(steps=100_000, step_s=0.01).start().wait_for_step(5)
    suspend(run, 1)
    state = run.stop().end()
    assert state.state == STOPPED and not run.events("alert")


@pytest.mark.skipif(sys.platform == "win32", reason="a sleep that keeps the interpreter lock is the C library's")
def test_a_stop_while_stacks_are_collected_is_a_stop(make_run: MakeRun) -> None:
    run = make_run(hang_timeout_s=LIMIT_S, hang_policy="stop", stop_timeout_s=8.0)
    run.behave(steps=100_000, step_s=0.01).behave(1, hang_at=20, hang_locked=True).start()
    run.wait(lambda _: "asked for their stacks" in run.log())  # rank 1 doesn't answer; the host waits for 5 s
    state = run.stop().end()
    assert state.state == STOPPED and not run.events("alert")


def test_a_checkpoint_that_takes_long_is_no_hang(make_run: MakeRun) -> None:
    run = make_run(hang_timeout_s=LIMIT_S, hang_policy="stop").behave(steps=20, commit_s=2.5 * LIMIT_S).start()
    assert run.end().state == FINISHED and not run.events("alert")
