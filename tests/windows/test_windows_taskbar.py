"""Progress on the window's button, by COM."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.outside.task_progress import NO_PROGRESS, TaskProgress, TaskState
from tests.helpers.window_fixture import OFFSCREEN_NOISE

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows, pytest.mark.skipif(sys.platform != "win32", reason="COM")]


def test_every_state_is_taken(qtbot: QtBot) -> None:
    from app.outside.taskbar_windows import ButtonProgress, ComError

    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    try:
        progress = ButtonProgress(int(window.winId()))
    except ComError as error:  # Wine has the interface only with a desktop
        pytest.skip(f"no task bar: {error}")
    for state in TaskState:
        progress.show(TaskProgress(state, 0.5))
    progress.show(NO_PROGRESS)
    assert not progress._failed
    progress.close()
