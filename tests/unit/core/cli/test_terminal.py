"""What a command prints: for people, for programs, and never what a terminal would obey."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from core.cli.terminal import MAX_SENTENCE, Terminal, one_line, visible
from core.errors import RankdeckError

pytestmark = pytest.mark.windows


def test_an_error_is_exactly_three_lines(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().error(RankdeckError("One\nsentence\twith  breaks.", "Do\r\nthis.", title="A title"))
    out, err = capsys.readouterr()
    assert (out, err) == ("", "A title\nOne sentence with breaks.\nDo this.\n")


def test_data_stays_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    terminal.quiet = True
    terminal.say("for a person")
    terminal.json({"größe": 1})
    terminal.progress("not shown without a terminal")
    out, err = capsys.readouterr()
    assert (out, err) == ('{"größe": 1}\n', "for a person\n")


def test_columns_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().table(("A", "LONGER"), [("xx", "y"), ("", "–")])
    assert capsys.readouterr().out == "A   LONGER\nxx  y\n    –\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\rb", r"a\rb"),
        ("a\u202eb", r"a\u202eb"),
        ("\x9bK", r"\x9bK"),
        ("tab\tline\nGröße 你好", "tab\tline\nGröße 你好"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_control_characters_are_shown_and_not_obeyed(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert one_line(text) == shown.replace("\t", " ").replace("\n", " ")


def test_a_very_long_sentence_keeps_its_ends(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().error(RankdeckError("a" * MAX_SENTENCE, "b" * 3 * MAX_SENTENCE + "end", title="T"))
    title, cause, step = capsys.readouterr().err.splitlines()
    assert (title, cause) == ("T", "a" * MAX_SENTENCE)
    assert len(step) < MAX_SENTENCE + 10 and step.startswith("bb") and step.endswith("bend") and " … " in step


def test_facts_line_up_and_an_empty_value_leaves_no_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().facts({"a": "1", "long name": ""})
    Terminal().facts({})
    assert capsys.readouterr().out == "a          1\nlong name\n"


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A narrow terminal as stdout and stderr; set in the test itself, since pytest changes them after the setup."""
    made = Screen()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, made)
    monkeypatch.setenv("COLUMNS", "20")
    return made


def test_a_progress_line_is_painted_over_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = shown(monkeypatch)
    terminal = Terminal()
    terminal.progress("longer than the terminal is wide")
    terminal.progress("short\n")
    terminal.say("a line")
    assert screen.getvalue() == "\rlonger than the ter\r" + "short ".ljust(19) + "\r" + " " * 6 + "\ra line\n"


def test_a_progress_line_that_is_to_stay_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = shown(monkeypatch)
    terminal = Terminal()
    terminal.end_progress()
    terminal.progress("step 5")
    terminal.end_progress()
    terminal.end_progress()
    assert screen.getvalue() == "\rstep 5\n"


@pytest.mark.parametrize(("typed", "answer"), [("y\n", True), (" YES \n", True), ("\n", False), ("", False)])
def test_a_question_is_answered_by_the_person(typed: str, answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = shown(monkeypatch)
    monkeypatch.setattr(sys, "stdin", Screen(typed))
    assert Terminal().ask("Sure?\n") is answer
    assert screen.getvalue() == "Sure? "


@pytest.mark.parametrize("stdin", [None, io.StringIO("y\n")])
def test_a_question_needs_a_terminal(stdin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = shown(monkeypatch)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert Terminal().ask("Sure?") is False and screen.getvalue() == ""
