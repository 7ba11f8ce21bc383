"""Notifications and the tray icon, while runs begin and end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtWidgets import QSystemTrayIcon
from pytestqt.qtbot import QtBot

from app.outside.run_news import RunNews
from app.outside.tray import Tray
from app.style.icons import app_icon
from core.processes.identity import identify
from core.run_folder.store import RunStore
from tests.helpers.made_runs import make_run
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = OFFSCREEN_NOISE
LIMIT_MS = 10_000


def set_state(store: RunStore, state: str, **changes: object) -> None:
    """As a host of this process writes it."""
    store.write_state(store.stored_state().replace(state=state, host=identify(os.getpid()), **changes))


@pytest.fixture
def two(runs_dir: Path, tmp_path: Path) -> tuple[RunStore, RunStore]:
    """Runs that have stopped."""
    (tmp_path / "text.txt").write_bytes(b"some text\n" * 9000)
    return make_run(tmp_path, runs_dir=runs_dir), make_run(tmp_path, runs_dir=runs_dir)


@pytest.mark.qt_log_ignore("This plugin does not support (raise|propagateSizeHints)", extend=True)
def test_a_run_that_ends_elsewhere_is_told_and_opened(
    open_window: OpenWindow, qtbot: QtBot, two: tuple[RunStore, RunStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    live, other = two
    rankdeck = open_window()
    told: list[RunNews] = []
    monkeypatch.setattr(rankdeck.notifications.tray, "show_message", told.append)
    rankdeck.showing.show(other.dir)
    set_state(live, "training", step=25, total_steps=100)
    rankdeck.runs.refresh()
    entries = rankdeck.runs.model.entries
    qtbot.waitUntil(lambda: any(entry.word == "training" for entry in entries()), timeout=LIMIT_MS)
    set_state(live, "finished", step=100)
    rankdeck.runs.refresh()
    qtbot.waitUntil(lambda: len(told) == 1, timeout=LIMIT_MS)
    assert told[0].run_dir == live.dir and told[0].title.endswith("finished.")
    rankdeck.notifications.tray.message_opened.emit(live.dir)
    assert rankdeck.showing.run_dir == live.dir


def test_what_is_seen_or_switched_off_is_not_told(
    open_window: OpenWindow, qtbot: QtBot, two: tuple[RunStore, RunStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, quiet = two
    rankdeck = open_window()
    told: list[RunNews] = []
    monkeypatch.setattr(rankdeck.notifications.tray, "show_message", told.append)
    rankdeck.showing.show(seen.dir)
    entries = rankdeck.runs.model.entries
    for store in (seen, quiet):
        set_state(store, "training", step=1, total_steps=100)
    qtbot.waitUntil(lambda: all(entry.word == "training" for entry in entries()), timeout=LIMIT_MS)
    rankdeck.window.activateWindow()  # charts that are made take it away for a moment
    qtbot.waitUntil(rankdeck.window.isActiveWindow)
    set_state(seen, "failed")
    qtbot.waitUntil(lambda: sum(entry.word == "failed" for entry in entries()) == 1, timeout=LIMIT_MS)
    rankdeck.settings.set_flag("notifications", False)
    set_state(quiet, "failed")
    qtbot.waitUntil(lambda: all(entry.word == "failed" for entry in entries()), timeout=LIMIT_MS)
    rankdeck.runner._pool.waitForDone(3000)
    qtbot.wait(50)
    assert told == []


@pytest.mark.qt_log_ignore("QObject::connect: No such signal QPlatformNativeInterface", extend=True)
def test_the_tray_s_icon_is_there_while_news_is_unread(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    tray = Tray(app_icon())
    monkeypatch.setattr(tray, "is_available", lambda: True)  # this platform has none; Qt's icon works without
    tray.show_message(RunNews(Path("runs/a"), "error", "a failed.", "It ran out of memory."))
    assert tray.icon is not None and tray.icon.toolTip() == "a failed." and tray.icon.isVisible()
    with qtbot.waitSignal(tray.message_opened) as clicked:
        tray.icon.messageClicked.emit()
    assert clicked.args == [Path("runs/a")]
    with qtbot.waitSignal(tray.message_opened):
        tray.icon.activated.emit(QSystemTrayIcon.ActivationReason.Trigger)
    tray.clear()
    assert not tray.icon.isVisible()
    with qtbot.waitSignal(tray.opened):
        tray.icon.activated.emit(QSystemTrayIcon.ActivationReason.Trigger)
    tray.close()


@pytest.mark.qt_log_ignore("QObject::connect: No such signal QPlatformNativeInterface", extend=True)
def test_the_tray_follows_live_runs(
    open_window: OpenWindow, qtbot: QtBot, two: tuple[RunStore, RunStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = two[0]
    rankdeck = open_window()
    tray = rankdeck.notifications.tray
    monkeypatch.setattr(tray, "is_available", lambda: True)
    set_state(run, "training", step=45, total_steps=100)
    qtbot.waitUntil(lambda: tray.icon is not None and tray.icon.toolTip().endswith("training, 45 %"), timeout=LIMIT_MS)
    assert tray.icon is not None and tray.icon.isVisible()
    rankdeck.preferences.flag_changed.emit("tray_icon")
    rankdeck.settings.set_flag("tray_icon", False)
    rankdeck.notifications.show_status()
    assert not tray.icon.isVisible()
    rankdeck.settings.set_flag("tray_icon", True)
    rankdeck.notifications.show_status()
    set_state(run, "stopped")
    qtbot.waitUntil(lambda: tray.icon is not None and not tray.icon.isVisible(), timeout=LIMIT_MS)
