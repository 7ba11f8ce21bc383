"""A script that hangs is named as a recipe's rank is, and one that is only silent for long is not."""

from __future__ import annotations

from tests.helpers.host_fixture import FINISHED, STOPPED
from tests.helpers.script_runs import MakeScriptRun
from tests.helpers.wine import not_under_wine

pytestmark = not_under_wine("tells the processor time of the process that asks, for every process")

STEPS = """
    import threading, time

    def train(first, last):
        for step in range(first, last):
            print(f"step {step} loss {1 / (step + 1):.4f}", flush=True)
            time.sleep(0.02)
"""


def test_a_script_that_hangs_is_named(script_run: MakeScriptRun) -> None:
    text = STEPS + "    train(0, 10)\n    time.sleep(600)\n"
    run = script_run(text, devices=("cpu:1",), hang_timeout_s=2.0).start()
    (alert,) = run.wait_for_event("alert")
    assert (alert["kind"], alert["title"]) == ("hang", "CPU 0 may hang")
    assert "step 9" in alert["cause"] and "decides where it continues" in alert["next_step"]
    assert "CPU 0: its process sleeps" in alert["cause"], "that of the script, not of what started it"
    assert run.stop().end().state == STOPPED


def test_a_copy_that_sleeps_before_its_first_step_is_named(script_run: MakeScriptRun) -> None:
    text = """
    import rankdeck
    if rankdeck.rank() == 1:
        time.sleep(600)
    train(0, 100_000)
    """
    run = script_run(STEPS + text, devices=("cpu:2",), start_timeout_s=2.0).start()
    (alert,) = run.wait_for_event("alert")
    assert (alert["kind"], alert["title"], alert["ranks"]) == ("hang", "CPU 1 may hang", [1])
    assert "CPU 1 (before its first step)" in alert["cause"]
    assert run.stop().end().state == STOPPED


def test_a_script_that_hangs_is_started_again_where_that_is_wanted(script_run: MakeScriptRun) -> None:
    text = """
    import pathlib, sys
    train(0, 10)
    if not pathlib.Path("hung").exists():
        pathlib.Path("hung").touch()
        time.sleep(600)
    """
    run = script_run(STEPS + text, devices=("cpu:1",), hang_timeout_s=2.0, hang_policy="restart").start()
    assert run.end().state == FINISHED
    assert len(run.events("alert")) == len(run.events("restart")) == 1
    assert run.steps(attempt=2) == list(range(10))


def test_a_script_that_is_silent_for_long_and_well_is_left_alone(script_run: MakeScriptRun) -> None:
    text = """
    time.sleep(5)  # a download before the first step
    train(0, 10)
    end = time.monotonic() + 5
    while time.monotonic() < end: pass  # an evaluation that prints nothing
    for part in range(50):  # and one that does, but no numbers
        print("still at it", flush=True)
        time.sleep(0.1)
    train(10, 20)
    """
    run = script_run(STEPS + text, devices=("cpu:1",), hang_timeout_s=2.0).start()
    assert run.end().state == FINISHED
    assert run.events("alert") == [] and run.steps() == list(range(20))
