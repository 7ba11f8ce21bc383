"""Updates in the window: one request to a real server, a quiet notice, and what Settings says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.preferences import updates_controller
from app.preferences.settings_dialog import SettingsDialog
from core import __version__
from tests.helpers.update_server import UpdateServer, update_server
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = OFFSCREEN_NOISE
LIMIT_MS = 30_000


@pytest.fixture
def announcer(monkeypatch: pytest.MonkeyPatch) -> Iterator[UpdateServer]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with update_server() as running:
        yield running


def checked(rankdeck: Rankdeck, qtbot: QtBot) -> str:
    """Checks now; what Settings says then."""
    with qtbot.waitSignal(rankdeck.updating.status_changed, timeout=LIMIT_MS):
        rankdeck.updating.check()
    return rankdeck.updating.status().text


def test_a_newer_version_is_told_and_its_page_opened(
    open_window: OpenWindow, qtbot: QtBot, announcer: UpdateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QUrl] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url) or True)
    announcer.announce("99.0.0", news=["It is faster.", "<b>No page.</b>"], page="new.html")
    rankdeck = open_window()
    assert rankdeck.updating.status().address == "" and rankdeck.window.runs.notice.title == ""
    rankdeck.updating.set_address(announcer.url)
    rankdeck.updating.open()
    notice = rankdeck.window.runs.notice
    qtbot.waitUntil(lambda: notice.title == "Rankdeck 99.0.0 is available", timeout=LIMIT_MS)
    assert notice.text == "It is faster.\n<b>No page.</b>"
    notice.button.click()
    assert [url.toString() for url in opened] == [f"{announcer.address}/new.html"]


def test_one_request_a_day_that_says_nothing_of_this_pc(
    open_window: OpenWindow, qtbot: QtBot, announcer: UpdateServer
) -> None:
    announcer.announce(__version__)
    announcer.paths["/update.json"][1]["Set-Cookie"] = "id=1"
    rankdeck = open_window()
    rankdeck.updating.set_address(announcer.url)
    for _ in range(2):
        assert checked(rankdeck, qtbot).endswith(f"Rankdeck {__version__} is the newest version.")
    rankdeck.updating.open()
    qtbot.wait(50)
    assert [line for line, _ in announcer.asked] == ["GET /update.json HTTP/1.1"] * 2
    for _, headers in announcer.asked:
        assert headers.pop("host") in announcer.address
        assert headers == {
            "user-agent": "Rankdeck",
            "accept-encoding": "identity",
            "accept-language": "en",
            "connection": "Keep-Alive",
        }


def test_a_check_ends_whatever_the_server_does(
    open_window: OpenWindow, qtbot: QtBot, announcer: UpdateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updates_controller, "ANSWER_LIMIT_MS", 200)
    rankdeck = open_window()
    rankdeck.updating.set_address(announcer.url)
    announcer.paths["/update.json"] = (200, {}, [b"{", b"}"])
    announcer.release_pieces.clear()  # the second piece never comes
    assert "did not answer in time" in checked(rankdeck, qtbot)
    announcer.release_pieces.set()
    monkeypatch.setattr(updates_controller, "ANSWER_LIMIT_MS", LIMIT_MS)
    announcer.answer(b" " * (updates_controller.LARGEST_ANSWER_BYTES + 1))
    assert "sent too much" in checked(rankdeck, qtbot)
    for place, says in (("http://example.invalid/", "failed"), (f"{announcer.address}/nothing", "not found")):
        rankdeck.updating.set_address(place)
        assert says in checked(rankdeck, qtbot).lower()


def test_settings_take_an_address_check_and_say_what_went_wrong(
    open_window: OpenWindow, qtbot: QtBot, announcer: UpdateServer
) -> None:
    announcer.announce("99.0.0", page="new.html")
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
    assert card.page.isVisible() and rankdeck.window.runs.notice.title == ""
    announcer.answer(b"<html>")
    card.check.click()
    qtbot.waitUntil(lambda: "The answer cannot be read" in card.result.text(), timeout=LIMIT_MS)
    assert not rankdeck.window.notice.isVisible()
    dialog.close()
