"""The whole window on a folder of runs and settings of its own, closed when the test ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.form.recipe_form import RecipeForm
from app.main import Rankdeck
from app.window.window_place import START_SIZE
from core import client
from core.run_folder.store import RunStore, list_runs
from tests.helpers.settings_file import settings_in

# Qt's offscreen platform says so of every window with a smallest size; nothing can be done about it.
# Windows also tells of a window that grows because its words wrap before its layout has asked for the room.
OFFSCREEN_NOISE = pytest.mark.qt_log_ignore(
    "This plugin does not support propagateSizeHints",
    "QWindowsWindow::setGeometry: Unable to set geometry",
    "This plugin does not support (raise|grabbing the keyboard)",  # of the search, a pop-up
    extend=True,
)
OpenWindow = Callable[[], Rankdeck]
READY_MS = 10_000
END_LIMIT_S = 60.0


@pytest.fixture
def open_window(qtbot: QtBot, tmp_path: Path, runs_dir: Path) -> Iterator[OpenWindow]:
    """Opens the window as `app.main.main` does, and waits until it knows its devices and its data.

    A second call opens it again on the same settings and runs, as after a restart; live runs are ended with the test.
    """
    opened: list[Rankdeck] = []

    def make() -> Rankdeck:
        rankdeck = Rankdeck(settings_in(tmp_path / "settings.ini"), runs_dir)
        opened.append(rankdeck)
        if rankdeck.settings.layout("window/geometry").isEmpty():
            rankdeck.window.resize(*START_SIZE)  # the offscreen platform's screen has 800 × 800 pixels
        rankdeck.open()
        qtbot.waitUntil(lambda: rankdeck.drafting.latest is not None and rankdeck.table.is_known, timeout=READY_MS)
        return rankdeck

    yield make
    for rankdeck in opened:
        shut(rankdeck)
    for entry in list_runs(runs_dir):
        state = entry.state
        # A test's own process may stand for a host that lives and does not listen.
        if state is not None and state.is_live and state.host is not None and state.host.pid != os.getpid():
            store = RunStore.open(entry.path)
            client.stop_run(store, now=True)
            client.wait_for_end(store, END_LIMIT_S)


@pytest.fixture
def open_sheet(open_window: OpenWindow) -> OpenWindow:
    def make() -> Rankdeck:
        rankdeck = open_window()
        rankdeck.window.actions_.new_run.setChecked(True)
        return rankdeck

    return make


def shut(rankdeck: Rankdeck) -> None:
    """Closes the window without a question and lets Qt forget it."""
    if not isValid(rankdeck):
        return
    rankdeck.window.close_now()
    rankdeck.window.deleteLater()
    rankdeck.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def unfold(form: RecipeForm) -> None:
    form.more.setChecked(True)
    for fold in form.advanced.folds:
        fold.toggle.setChecked(True)


def type_into(rankdeck: Rankdeck, name: str, text: str, qtbot: QtBot) -> None:
    editor: Any = rankdeck.window.new_run.form.rows[name].editor
    editor.clear()
    qtbot.keyClicks(editor, text)
