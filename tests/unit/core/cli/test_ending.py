"""Run endings: the exit code that a command returns."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.cli.follow import Ending, exit_code, report_ending
from core.cli.interrupts import Interrupts
from core.cli.progress_line import RunProgress
from core.cli.terminal import Terminal
from core.run_folder.state import RunState
from core.run_folder.store import RunStore


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
