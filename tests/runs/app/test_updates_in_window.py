"""Updates in the window: a quiet notice, the dialog, the download from a real server, and what follows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.controllers import updating
from app.main import Rankdeck
from app.views.dialogs.settings_dialog import SettingsDialog
from core import __version__
from core.updates import installed, server
from core.updates.installed import Installation
from tests.helpers.made_runs import make_run
from tests.helpers.update_server import UpdateServer, update_server
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow
from tests.runs.app.test_notifications_in_window import set_state

pytestmark = OFFSCREEN_NOISE
LIMIT_MS = 30_000
SETUP = b"MZ" + bytes(50_000)


@pytest.fixture
def announcer() -> Iterator[UpdateServer]:
    with update_server() as running:
        yield running


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """As if the setup had installed this Rankdeck; setups are noted instead of started."""
    begun: list[Path] = []
    here = Installation(tmp_path, f"{__version__}-abcdef0123", "0.0.9-0123456789")
    monkeypatch.setattr(installed, "find_installation", lambda: here)
    monkeypatch.setattr(installed, "start_setup", begun.append)
    monkeypatch.setattr(server, "setup_folder", lambda: tmp_path / "updates")
    return begun


def settled(rankdeck: Rankdeck, qtbot: QtBot) -> None:
    """Until the window has looked whether it was installed, and whether a check is due."""
    qtbot.waitUntil(lambda: rankdeck.updating._installation is not None, timeout=LIMIT_MS)


def test_without_an_address_nothing_is_asked(open_window: OpenWindow, qtbot: QtBot, started: list[Path]) -> None:
    rankdeck = open_window()
    settled(rankdeck, qtbot)
    status = rankdeck.updating.status()
    assert (status.address, status.has_update, status.previous) == ("", False, "0.0.9")
    assert rankdeck.window.runs.notice.title == "" and not started


def test_a_newer_version_is_told_shown_downloaded_and_started(
    open_window: OpenWindow, qtbot: QtBot, started: list[Path], announcer: UpdateServer
) -> None:
    announcer.announce("99.0.0", SETUP, news=["It is faster.", "<b>No page.</b>"])
    rankdeck = open_window()
    settled(rankdeck, qtbot)
    rankdeck.updating.set_address(announcer.url)
    rankdeck.updating.open()
    notice = rankdeck.window.runs.notice
    qtbot.waitUntil(lambda: notice.title == "Rankdeck 99.0.0 is available", timeout=LIMIT_MS)
    notice.button.click()
    dialog = rankdeck.updating.dialog
    assert dialog is not None and "• <b>No page.</b>" in dialog.news.text()
    assert "The setup has 50 kB." in dialog.size_line.text()
    with qtbot.waitSignal(rankdeck.window.closed, timeout=LIMIT_MS):
        dialog.install.click()
    assert [path.read_bytes() for path in started] == [SETUP]


def test_it_is_asked_once_a_day(
    open_window: OpenWindow, qtbot: QtBot, started: list[Path], announcer: UpdateServer
) -> None:
    assert started == []
    announcer.announce(__version__)
    rankdeck = open_window()
    settled(rankdeck, qtbot)
    rankdeck.updating.set_address(announcer.url)
    with qtbot.waitSignal(rankdeck.updating.status_changed, timeout=LIMIT_MS):
        rankdeck.updating.open()
    assert len(announcer.asked) == 1 and not rankdeck.updating.status().has_update
    rankdeck.updating.open()
    rankdeck.runner._pool.waitForDone(LIMIT_MS)
    qtbot.wait(50)
    assert len(announcer.asked) == 1


def test_settings_take_an_address_check_and_say_what_went_wrong(
    open_window: OpenWindow, qtbot: QtBot, started: list[Path], announcer: UpdateServer
) -> None:
    assert started == []
    announcer.announce("99.0.0")
    rankdeck = open_window()
    rankdeck.window.actions_.settings.trigger()
    dialog = rankdeck.window.findChild(SettingsDialog)
    assert dialog is not None
    card = dialog.updates
    assert not card.check.isEnabled() and "while this is empty" in card.result.text()
    card.address.setText("http://example.org")
    card.address.editingFinished.emit()
    assert card.problem.isVisible() and rankdeck.updating.address == ""
    card.address.setText(announcer.url)
    card.address.editingFinished.emit()
    assert rankdeck.updating.address == announcer.url and not card.problem.isVisible()
    card.check.click()
    qtbot.waitUntil(lambda: card.result.text().endswith("Rankdeck 99.0.0 is available."), timeout=LIMIT_MS)
    assert card.update_button.isVisible() and rankdeck.window.runs.notice.title == ""
    announcer.answer(b"<html>")
    card.check.click()
    qtbot.waitUntil(lambda: "The answer cannot be read" in card.result.text(), timeout=LIMIT_MS)
    assert not rankdeck.window.notice.isVisible()
    dialog.close()


def test_an_update_waits_for_runs_and_a_broken_download_can_be_tried_again(
    open_window: OpenWindow, qtbot: QtBot, started: list[Path], announcer: UpdateServer, runs_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_bytes(b"some text\n" * 9000)
    runs_dir.mkdir(exist_ok=True)
    run = make_run(tmp_path, runs_dir=runs_dir)
    announcer.announce("99.0.0", SETUP)
    rankdeck = open_window()
    settled(rankdeck, qtbot)
    rankdeck.updating.set_address(announcer.url)
    rankdeck.updating.show_update()
    qtbot.waitUntil(lambda: rankdeck.updating.dialog is not None, timeout=LIMIT_MS)
    dialog = rankdeck.updating.dialog
    assert dialog is not None
    set_state(run, "training", step=1, total_steps=10)
    qtbot.waitUntil(lambda: bool(rankdeck.display.live_runs()), timeout=LIMIT_MS)
    dialog.install.click()
    assert dialog.notice.isVisible() and dialog.install.isEnabled() and len(announcer.asked) == 1
    set_state(run, "stopped")
    qtbot.waitUntil(lambda: not rankdeck.display.live_runs(), timeout=LIMIT_MS)
    announcer.release_pieces.clear()
    dialog.install.click()
    qtbot.waitUntil(lambda: dialog.bar.value() > 0, timeout=LIMIT_MS)
    dialog.leave.click()  # says stop; heard with the next bytes
    announcer.release_pieces.set()
    qtbot.waitUntil(dialog.install.isEnabled, timeout=LIMIT_MS)
    assert started == [] and list((tmp_path / "updates").iterdir()) == []
    dialog.leave.click()
    assert rankdeck.updating.dialog is None


def test_the_way_back_is_asked_for(
    open_window: OpenWindow, qtbot: QtBot, started: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from PySide6.QtWidgets import QMessageBox

    assert started == [] and updating.BUSY_TITLE
    gone: list[Installation] = []
    monkeypatch.setattr(installed, "go_back", gone.append)
    rankdeck = open_window()
    settled(rankdeck, qtbot)
    rankdeck.updating.ask_back()
    question = rankdeck.window.findChild(QMessageBox)
    assert question is not None and "0.0.9" in question.text()
    with qtbot.waitSignal(rankdeck.window.closed, timeout=LIMIT_MS):
        next(button for button in question.buttons() if "back" in button.text()).click()
    assert [one.previous_version for one in gone] == ["0.0.9"]
