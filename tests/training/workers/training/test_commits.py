"""When a checkpoint is due by the clock."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest

from core.protocol.messages import CommitTo, Message
from workers.host_link.inbox import Inbox
from workers.host_link.reporter import Reporter
from workers.training.commits import BUSY, CommitRequest, Commits


class Nowhere:
    def send_bytes(self, data: bytes) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [1000.0]
    monkeypatch.setattr("workers.training.commits.time.monotonic", lambda: now[0])
    yield now
    monkeypatch.undo()


def made(*answers: Message) -> tuple[Commits, Reporter]:
    said: queue.SimpleQueue[Message] = queue.SimpleQueue()
    for answer in answers:
        said.put(answer)
    reporter = Reporter(Nowhere(), 0, 1)
    return Commits(reporter, Inbox(said)), reporter


def test_the_first_is_due_after_a_minute_and_the_next_after_the_interval(clock: list[float]) -> None:
    commits, reporter = made()
    clock[0] += 59
    assert not commits.is_due(300.0)
    clock[0] += 1
    assert commits.is_due(300.0)
    commits.newest = 1
    commits.reset_age()
    clock[0] += 299
    assert not commits.is_due(300.0)
    clock[0] += 1
    assert commits.is_due(300.0)
    assert reporter.close()


def test_a_shorter_interval_counts_from_the_first_on(clock: list[float]) -> None:
    commits, reporter = made()
    clock[0] += 5
    assert commits.is_due(5.0)
    commits.reset_age()
    assert not commits.is_due(5.0)
    assert reporter.close()


def test_while_the_host_is_busy_there_is_no_first_yet(clock: list[float]) -> None:
    commits, reporter = made(CommitTo(-1, ""))
    assert commits.begin(CommitRequest(3, "asked", pytest.fail, lambda _: pytest.fail())) == BUSY
    clock[0] += 60
    assert commits.is_due(300.0)
    assert reporter.close()
