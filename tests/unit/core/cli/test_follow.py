"""Watching a run: which lines a person sees, and what Ctrl+C does while its host can't be reached."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from core.cli.follow import Ending, Follower, StopLadder, exit_code, line_text, report_ending
from core.cli.interrupts import Interrupts, counted_interrupts
from core.cli.progress_line import RunProgress
from core.cli.terminal import Terminal
from core.processes.identity import own
from core.recipes.main_metric import MainMetrics
from core.run_folder.state import RunState
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run

pytestmark = pytest.mark.windows


@pytest.fixture
def store(tmp_path: Path, runs_dir: Path) -> RunStore:
    (tmp_path / "text.txt").write_bytes(TEXT)
    return make_run(tmp_path, runs_dir=runs_dir)


def test_an_evaluation_begins_with_the_recipes_own_figure() -> None:
    metric = MainMetrics().of("clstm_ppo")
    line = {"event": "eval", "step": 5, "val_loss": -490.5, "val_return": 490.5, "val_length": 30.0}
    assert line_text(line, metric) == "Step 5: evaluation return 490.5, length 30.00"
    assert line_text({"event": "eval", "step": 5, "val_loss": 2.0}, metric) == "Step 5: validation loss 2.000"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"event": "step", "step": 3}, ""),
        ({"event": "finished", "step": 3}, ""),
        ({"event": "data", "tokens": 9}, ""),  # 0.1
        ({"event": "launch", "devices": ["cpu:0"], "mode": "single", "notes": ["A."]}, "Starting on CPU 0."),
        ({"event": "eval", "step": 5, "val_loss": None, "nonfinite": ["val_loss"]}, "Step 5: validation loss –"),
        (
            {"event": "eval", "step": 5, "val_loss": -490.5, "val_return": 490.5, "val_halt_steps": 2},
            "Step 5: validation loss -490.5, return 490.5, halt steps 2",
        ),
        ({"event": "commit", "step": 5, "generation": 2}, "Step 5: checkpoint 2 saved."),  # 0.1
        (
            {"event": "alert", "title": "A", "cause": "B.", "next_step": "C.", "window_step": "D."},
            "Alert: A. B. C.",
        ),
    ],
)
def test_what_a_person_sees_on_a_line_of_its_own(line: dict[str, Any], words: str) -> None:
    assert line_text(line) == words


def test_following_ends_with_the_run_and_misses_no_line(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write_state(store.state().replace(state="training", host=own()))

    def train() -> None:
        with store.metrics.open("ab") as file:
            for step in range(200):
                file.write(b'{"event":"eval","rank":0,"step":%d,"val_loss":1.5}\n' % step)
                file.flush()
        store.write_state(store.stored_state().replace(state="finished", host=None))

    thread = threading.Thread(target=train)
    thread.start()
    ending = Follower(store, Terminal(), as_json=False).until_end(Interrupts(), lambda _: False)
    thread.join()
    assert ending.state.state == "finished"
    lines = [line for line in capsys.readouterr().out.splitlines() if "validation" in line]
    assert lines == [f"Step {step}: validation loss 1.500" for step in range(200)]


def test_each_interrupt_is_handed_on_once_and_may_leave(store: RunStore) -> None:
    store.write_state(store.state().replace(state="training", host=own()))
    interrupts, seen = Interrupts(), []
    for number in (signal.SIGINT, signal.SIGTERM):
        interrupts.note(number)

    def leave_at_second(number: int) -> bool:
        seen.append(number)
        return number == 2

    ending = Follower(store, Terminal(), as_json=False).until_end(interrupts, leave_at_second)
    assert (seen, ending.interrupts, ending.state.is_live) == ([1, 2], 2, True)


def test_a_stop_that_cannot_be_sent_is_said(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write_state(store.state().replace(state="training", host=own()))
    store.write_host_json(1, "0" * 32, own().pid)  # nothing listens on port 1
    assert not StopLadder(store, Terminal()).climb(1)
    error = capsys.readouterr().err
    assert "Ctrl+C again" in error and "cannot be reached" in error


def test_a_script_is_asked_to_stop(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write_state(store.state().replace(state="training", host=own(), recipe="script"))
    store.write_host_json(1, "0" * 32, own().pid)
    StopLadder(store, Terminal()).climb(1)
    assert "Asked the script to stop. Press Ctrl+C again to stop it immediately." in capsys.readouterr().err


def test_interrupts_are_counted_and_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with counted_interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        deadline = time.monotonic() + 5
        while interrupts.count < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert interrupts.count == 2
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("state", "code", "interrupts", "expected"),
    [
        ("finished", 0, 0, 0),
        ("stopped", 0, 1, 0),
        ("stopped", 1, 0, 1),
        ("failed", None, 0, 1),
        ("failed", 3, 0, 3),
        ("interrupted", None, 0, 1),
        ("stopped", 1, 2, 130),
    ],
)
def test_the_exit_code_says_how_it_ended(state: str, code: int | None, interrupts: int, expected: int) -> None:
    ended = RunState("a-run", created=0.0, updated=1.0, state=state, exit_code=code)
    assert exit_code(Ending(ended, RunProgress(), interrupts)) == expected


def test_two_ways_of_one_interrupt_count_once() -> None:
    for alike, expected in ((False, 2), (True, 1)):
        interrupts = Interrupts(alike=alike)
        for number in (2, 15):
            interrupts.note(number)
        assert interrupts.count == expected
        interrupts.note(15)
        assert interrupts.count == expected + 1


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState("a-run", created=0, updated=1140, attempt=2, trained_s=62), "Finished after 1 m 02 s of training."),
        (RunState("a-run", created=0, updated=1140, attempt=2), "Finished."),  # by a version that did not count
        (RunState("a-run", created=0, updated=48), "Finished after 48 s."),
    ],
)
def test_the_time_between_two_attempts_does_not_count(
    state: RunState, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ending = Ending(state.replace(state="finished", exit_code=0, recipe="x"), RunProgress(), 0)
    report_ending(ending, RunStore(tmp_path), Terminal())
    assert capsys.readouterr().out.strip() == said
