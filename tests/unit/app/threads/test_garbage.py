"""Garbage is collected on the GUI thread, also while another thread allocates."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.threads.garbage import GarbageCollection

pytestmark = pytest.mark.windows


class Cycle:
    """Only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def by_hand() -> Iterator[None]:
    gc.disable()
    yield  # what is frozen stays so: every later test with a window would look through all that was ever imported
    gc.enable()


def test_a_worker_that_allocates_frees_nothing(qtbot: QtBot) -> None:
    freed_on, done = list[threading.Thread](), threading.Event()
    collection = GarbageCollection()
    collection.start()
    weakref.finalize(Cycle(), lambda: freed_on.append(threading.current_thread()))

    kept = list[list[int]]()

    def allocate() -> None:
        kept.extend([number] for number in range(100_000))
        done.set()

    threading.Thread(target=allocate).start()
    qtbot.waitUntil(lambda: done.is_set() and bool(freed_on))
    assert freed_on == [threading.main_thread()] and kept
    collection.deleteLater()
