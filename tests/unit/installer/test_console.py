"""The progress line, on a terminal and off one."""

from __future__ import annotations

import io

import pytest

from installer import console
from installer.console import ProgressLine, SetupError

pytestmark = pytest.mark.windows


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_is_rewritten() -> None:
    stream = Terminal()
    with ProgressLine(stream) as progress:
        progress.say("creating .venv")
        progress.show("package 1: torch, with a long description")
        progress.say("ready")
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    last = text.rstrip("\n").split("\r")[-1]
    assert last.rstrip().endswith("ready")
    assert len(last) == len(text.split("\r")[2]), "the longer line before is painted over"


def test_off_a_terminal_each_thing_is_said_once() -> None:
    stream = io.StringIO()
    with ProgressLine(stream) as progress:
        progress.say("creating .venv")
        for _ in range(5):
            progress.show("package 1: torch")
        progress.say("ready")
    assert [line.split("] ")[1] for line in stream.getvalue().splitlines()] == ["creating .venv", "ready"]


def test_off_a_terminal_a_long_step_is_shown_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    progress = ProgressLine(stream)
    progress.say("downloading")
    for now[0] in (1.0, console.QUIET_INTERVAL_S, console.QUIET_INTERVAL_S + 1):
        progress.show("downloading")
    assert stream.getvalue() == "[   0 s] downloading\n[  15 s] downloading\n"


def test_a_line_fits_a_narrow_terminal_and_is_ended_once() -> None:
    stream = Terminal()
    with ProgressLine(stream):
        pass
    assert stream.getvalue() == "", "nothing was shown, so there is no line to end"
    with pytest.raises(KeyError), ProgressLine(stream) as progress:
        progress.show("x" * 300)
        raise KeyError
    assert len(stream.getvalue()) == len("\r") + 119 + len("\n")


def test_an_error_is_three_lines() -> None:
    error = SetupError("A title", "A cause.", "A next step.")
    assert (str(error), error.exit_code) == ("A title\nA cause.\nA next step.", 1)
