"""A test with Qt collects no garbage but on the GUI thread."""

from __future__ import annotations

import gc
import threading

import pytest
from PySide6.QtWidgets import QWidget

_collected_on = list[threading.Thread]()


class Cycle:
    """Holds a widget, and only a collection frees it."""

    def __init__(self) -> None:
        self.itself, self.widget = self, QWidget()

    def __del__(self) -> None:
        _collected_on.append(threading.current_thread())


@pytest.mark.usefixtures("qtbot")
def test_another_thread_that_allocates_collects_nothing() -> None:
    assert not gc.isenabled()
    Cycle()
    worker = threading.Thread(target=lambda: [[number] for number in range(100_000)])
    worker.start()
    worker.join()
    assert not _collected_on
    gc.collect()
    assert _collected_on == [threading.main_thread()]
