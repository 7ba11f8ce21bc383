"""The one thread crossing: in order, in batches, bounded, and over when it is closed."""

from __future__ import annotations

import threading
import time

import pytest
from PySide6.QtCore import QThread
from pytestqt.qtbot import QtBot

from app.threads import bridge
from app.threads.bridge import CAPACITY, Feed, Mailbox, Send, Worker

pytestmark = pytest.mark.windows


def put_all(mailbox: Mailbox, items: range) -> None:
    for item in items:
        while not mailbox.put(item):
            assert not mailbox._closed


def test_items_arrive_in_order_on_the_gui_thread(qtbot: QtBot) -> None:
    mailbox = Mailbox()
    got: list[int] = []
    threads: set[QThread] = set()
    mailbox.delivered.connect(lambda item: (got.append(item), threads.add(QThread.currentThread())))
    worker = threading.Thread(target=put_all, args=(mailbox, range(5 * CAPACITY)))
    worker.start()
    qtbot.waitUntil(lambda: len(got) == 5 * CAPACITY)
    worker.join()
    assert got == list(range(5 * CAPACITY))
    assert threads == {mailbox.thread()}
    mailbox.close()


def test_a_slow_receiver_gets_its_items_in_several_rounds(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "DRAIN_BUDGET_S", 0.001)
    mailbox = Mailbox()
    got: list[int] = []
    rounds: list[int] = []
    mailbox.delivered.connect(lambda item: (got.append(item), time.sleep(0.002)))
    mailbox.drained.connect(lambda: rounds.append(len(got)))
    put_all(mailbox, range(5))
    qtbot.waitUntil(lambda: len(got) == 5)
    assert rounds[0] == 1
    mailbox.close()


def test_a_full_mailbox_refuses_and_loses_nothing(qtbot: QtBot) -> None:
    mailbox = Mailbox()
    got: list[int] = []
    mailbox.delivered.connect(got.append)
    assert all(mailbox.put(item, 0) for item in range(CAPACITY))
    assert not mailbox.put(CAPACITY, 0)
    qtbot.waitUntil(lambda: len(got) == CAPACITY)
    assert mailbox.put(CAPACITY, 0)
    qtbot.waitUntil(lambda: got == list(range(CAPACITY + 1)))
    mailbox.close()


def test_a_closed_mailbox_takes_and_delivers_nothing(qtbot: QtBot) -> None:
    mailbox = Mailbox()
    got: list[int] = []
    mailbox.delivered.connect(got.append)
    assert mailbox.put(1)
    mailbox.close()
    assert not mailbox.put(2)
    qtbot.wait(3 * bridge.DRAIN_INTERVAL_MS)
    assert got == []


def test_closing_lets_a_waiting_sender_go(qtbot: QtBot) -> None:
    mailbox = Mailbox()
    put_all(mailbox, range(CAPACITY))
    answers: list[bool] = []
    sender = threading.Thread(target=lambda: answers.append(mailbox.put(0, 60)))
    sender.start()
    mailbox.close()
    sender.join(10)
    assert answers == [False]
    assert qtbot is not None


def test_a_worker_that_hangs_is_left_behind_in_bounded_time(caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()
    worker = Worker("stubborn", lambda _stopping: release.wait(60) and None)
    worker.start()
    assert not worker.stop(timeout_s=0.05)
    assert "stubborn" in caplog.text
    release.set()
    worker.join(10)


def test_a_defect_in_a_worker_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker("broken", lambda _stopping: print(int("no number")))
    worker.start()
    worker.join(10)
    assert "broken" in caplog.text
    assert "ValueError" in caplog.text


class Reluctant(Feed):
    """Its workers send one item and end only once they may, like those that wait for a host."""

    may_end = threading.Event()

    def __init__(self) -> None:
        super().__init__()
        self.got: list[object] = []

    def open(self, what: str) -> None:
        def work(stopping: threading.Event, send: Send) -> None:
            send(what)
            stopping.wait(60)
            self.may_end.wait(60)

        self._start("reluctant", work)

    def _on_item(self, item: object) -> None:
        self.got.append(item)


def test_opening_again_does_not_wait_for_the_worker_before_but_closing_does(qtbot: QtBot) -> None:
    feed = Reluctant()
    feed.open("a")
    qtbot.waitUntil(lambda: feed.got == ["a"])
    first = feed._worker
    feed.open("b")
    assert first is not None and first.is_alive()  # nobody waited for it
    qtbot.waitUntil(lambda: feed.got == ["a", "b"])
    threading.Timer(0.2, feed.may_end.set).start()
    feed.close()
    feed.close()
    assert not first.is_alive() and not feed.is_open
