"""Errors: one next step, worded for the command line and for the window."""

from __future__ import annotations

import pytest

from core.errors import ConfigError, RankdeckError, UsageError, full_stop, sentences

pytestmark = pytest.mark.windows


def test_the_command_line_gets_the_option_and_the_window_does_not() -> None:
    error = UsageError("It is a file.", "Choose another folder.", option="--out PATH")
    assert error.next_step == "Choose another folder: --out PATH" and error.window_step == "Choose another folder."
    assert str(error) == "Invalid request: It is a file. Choose another folder: --out PATH"
    assert error.as_dict()["window_step"] == "Choose another folder."


def test_a_step_without_an_option_is_the_same_in_both() -> None:
    error = RankdeckError("The disk is full.", "Free some space.")
    assert error.next_step == error.window_step == "Free some space."
    assert error.as_dict() == {
        "title": "The run failed",
        "cause": "The disk is full.",
        "next_step": "Free some space.",
    }
    assert ConfigError("lr", "It is text.", "Give a number.", option="--lr X").next_step == "Give a number: --lr X"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("No module named x", "Install it."), "No module named x. Install it."),
        (("It is full.", "Free some space."), "It is full. Free some space."),
        (("It said “no.”", "Ask again."), "It said “no.” Ask again."),
        (("", "Free some space."), "Free some space."),
        (("Is it there?", None, "Run it: rankdeck resume x"), "Is it there? Run it: rankdeck resume x"),
    ],
)
def test_a_stop_stands_between_cause_and_next_step(parts: tuple[str | None, ...], message: str) -> None:
    assert sentences(*parts) == message


def test_a_sentence_gets_the_stop_it_lacks() -> None:
    assert full_stop("out of memory ") == "out of memory." and full_stop("Why?") == "Why?" and full_stop("") == ""
