"""Answers about the newest question."""

from __future__ import annotations

import threading

from pytestqt.qtbot import QtBot

from app.threads.background import OperationRunner
from app.threads.newest_answer import NewestAnswer


def test_an_answer_that_does_not_count_is_asked_for_again(qtbot: QtBot) -> None:
    runner, answers, go_on = OperationRunner(), [], threading.Event()
    given = iter(["cancelled", "b", "a"])
    asking: NewestAnswer[str] = NewestAnswer(
        runner, answers.append, lambda error: error.cause, is_kept=lambda answer: answer != "cancelled"
    )

    def work() -> str:
        go_on.wait(10)
        return next(given)

    asking.ask("a", work)
    assert not asking.is_asking, "out of sight nothing is asked"
    asking.set_watched(True)
    qtbot.waitUntil(lambda: asking.is_asking and not asking._later.isActive())
    asking.ask("b", work)
    go_on.set()
    qtbot.waitUntil(lambda: answers == ["b"])
    asking.ask("a", work)
    qtbot.waitUntil(lambda: answers == ["b", "a"])
    asking.close()
    runner.close()
