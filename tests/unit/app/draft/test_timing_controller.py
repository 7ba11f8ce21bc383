"""What the time of a draft is made of: nothing is timed while a run trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.draft.timing_controller import WHILE_TRAINING, TimingController
from app.threads.background import OperationRunner
from core.measure.ranks import CancelledError
from tests.unit.core.measure.estimate.made import FIGURES, RUN


@pytest.fixture
def runner() -> Iterator[OperationRunner]:
    made = OperationRunner()
    yield made
    made.close()


def test_no_step_is_timed_while_a_run_trains(runner: OperationRunner, tmp_path: Path, qtbot: QtBot) -> None:
    begun = []

    def rest(_cancelled: Callable[[], bool]) -> None:
        begun.append(1)
        raise CancelledError

    parent = QObject()
    timing = TimingController(runner, tmp_path, lambda: None, rest, parent)
    timing.set_watched(True)
    timing.update(RUN, FIGURES, is_training=True)
    qtbot.waitUntil(lambda: timing.found is not None)
    assert timing.found is not None and (timing.found.note, dict(timing.found.steps)) == (WHILE_TRAINING, {})
    assert not timing.is_measuring and not begun
    timing.update(RUN, FIGURES)
    qtbot.waitUntil(lambda: bool(begun))
    timing.close()
