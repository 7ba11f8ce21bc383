"""Background work: where its outcome arrives, and where it does not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from app.threads import background
from app.threads.background import Operation, OperationRunner
from core.errors import RankdeckError, UsageError

pytestmark = [pytest.mark.windows, pytest.mark.usefixtures("qapp")]


@pytest.fixture
def runner() -> Iterator[OperationRunner]:
    made = OperationRunner()
    yield made
    made.close()
    made.deleteLater()


def test_the_outcome_arrives_on_the_gui_thread(runner: OperationRunner, qtbot: QtBot) -> None:
    threads: list[str] = []
    results: list[int] = []

    def work() -> int:
        threads.append(threading.current_thread().name)
        return 7

    def success(value: int) -> None:
        threads.append(threading.current_thread().name)
        results.append(value)

    runner.run(Operation(work, success, pytest.fail))
    assert results == []
    qtbot.waitUntil(lambda: results == [7])
    assert threads[1] == "MainThread" and threads[0] != "MainThread"


def test_errors_arrive_in_words(runner: OperationRunner, qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> None:
    errors: list[RankdeckError] = []

    def refuse() -> None:
        raise UsageError("No.", "Ask again.")

    def break_down() -> None:
        raise KeyError("x")

    with caplog.at_level(logging.CRITICAL):
        runner.run(Operation(refuse, pytest.fail, errors.append))
        qtbot.waitUntil(lambda: len(errors) == 1)
        runner.run(Operation(break_down, pytest.fail, errors.append))
        qtbot.waitUntil(lambda: len(errors) == 2)
    assert isinstance(errors[0], UsageError)
    assert "KeyError" in errors[1].cause and errors[1].title == "Something went wrong unexpectedly"


def test_only_the_newest_of_a_topic_counts(runner: OperationRunner, qtbot: QtBot) -> None:
    results: list[str] = []
    gate = threading.Event()

    def slow() -> str:
        gate.wait(10)
        return "old"

    runner.run(Operation(slow, results.append, pytest.fail, topic="size"))
    runner.run(Operation(lambda: "new", results.append, pytest.fail, topic="size"))
    qtbot.waitUntil(lambda: results == ["new"])
    gate.set()
    runner.run(Operation(lambda: "last", results.append, pytest.fail))
    qtbot.waitUntil(lambda: "last" in results and not runner._open)
    QCoreApplication.processEvents()
    assert results == ["new", "last"]


def test_nothing_arrives_after_close() -> None:
    runner = OperationRunner()
    results: list[int] = []
    started = threading.Event()

    def work() -> int:
        started.set()
        return 1

    runner.run(Operation(work, results.append, pytest.fail))
    assert started.wait(10)
    runner.close()
    runner.run(Operation(lambda: 2, results.append, pytest.fail))
    QCoreApplication.processEvents()
    assert results == []
    runner.deleteLater()


def test_work_that_outlives_its_runner_has_nobody_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a Qt thread would fail this test; Qt itself waits for the thread when it deletes the runner."""
    monkeypatch.setattr(background, "CLOSE_WAIT_MS", 10)
    free, heard = threading.Event(), []
    runner = OperationRunner()
    runner.run(Operation(lambda: free.wait(10.0), heard.append, heard.append))
    runner.close()
    freeing = threading.Timer(0.2, free.set)
    freeing.start()
    shiboken6.delete(runner)
    freeing.join()
    assert free.is_set() and heard == []
