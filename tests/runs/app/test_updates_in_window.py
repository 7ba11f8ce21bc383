"""Updates in the window: one request to a real server, a quiet notice, and the answer in Settings."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

from app.main import Rankdeck
from app.preferences import updates_controller
from app.preferences.settings_dialog import UPDATES_OFF, SettingsDialog
from app.preferences.updates_controller import UpdateError, check_address, is_newer, read_announcement
from core import __version__
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = OFFSCREEN_NOISE
LIMIT_MS = 30_000


class UpdateServer:
    """Answers.

    Attributes:
        paths: What each path answers: a status, headers, and a body in pieces.
        asked: ``(line, headers)`` of every request.
        release_pieces: Set: pieces after the first are sent.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.paths: dict[str, tuple[int, dict[str, str], list[bytes]]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.release_pieces = threading.Event()
        self.release_pieces.set()

    @property
    def url(self) -> str:
        return f"{self.address}/update.json"

    def announce(self, release: str, **changes: Any) -> None:
        document = {"format": "rankdeck-update", "version": 1, "release": release, "news": ["Faster."]}
        self.answer(json.dumps(document | changes).encode())

    def answer(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.paths["/update.json"] = (status, headers or {"Content-Length": str(len(body))}, [body])


@pytest.fixture
def announcer(monkeypatch: pytest.MonkeyPatch) -> Iterator[UpdateServer]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append((self.requestline, {name.lower(): value for name, value in self.headers.items()}))
            status, headers, pieces = server.paths.get(self.path, (404, {"Content-Length": "0"}, []))
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            for number, piece in enumerate(pieces):
                if number:
                    server.release_pieces.wait(60)
                try:
                    self.wfile.write(piece)
                except OSError:
                    return

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = False
    server = UpdateServer(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.release_pieces.set()
        http.shutdown()
        http.server_close()
        thread.join()


def checked(rankdeck: Rankdeck, qtbot: QtBot) -> str:
    """Checks now; returns the line for Settings."""
    with qtbot.waitSignal(rankdeck.updating.answered, timeout=LIMIT_MS) as answered:
        rankdeck.updating.check()
    return str(answered.args[0])


def test_a_newer_version_is_told_and_its_page_opened(
    open_window: OpenWindow, qtbot: QtBot, announcer: UpdateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QUrl] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url) or True)
    announcer.announce("99.0.0", page="new.html")
    rankdeck = open_window()
    rankdeck.window.actions_.settings.trigger()
    dialog = rankdeck.window.findChild(SettingsDialog)
    assert dialog is not None and dialog.updates_note.text() == UPDATES_OFF
    qtbot.keyClicks(dialog.updates, "http://example.org")
    dialog.updates.editingFinished.emit()
    assert "does not begin with https://" in dialog.updates_note.text() and rankdeck.updating.address == ""
    dialog.updates.clear()
    qtbot.keyClicks(dialog.updates, announcer.url)
    dialog.updates.editingFinished.emit()
    qtbot.waitUntil(lambda: dialog.updates_note.text() == "Rankdeck 99.0.0 is available.", timeout=LIMIT_MS)
    dialog.close()
    notice = rankdeck.window.runs.notice
    assert notice.title == "Rankdeck 99.0.0 is available"
    notice.button.click()
    assert [url.toString() for url in opened] == [f"{announcer.address}/new.html"]


def test_one_request_a_day_that_says_nothing_of_this_pc(
    open_window: OpenWindow, qtbot: QtBot, announcer: UpdateServer
) -> None:
    announcer.announce(__version__)
    announcer.paths["/update.json"][1]["Set-Cookie"] = "id=1"
    rankdeck = open_window()
    rankdeck.settings.set_text(updates_controller.ADDRESS, announcer.url)
    for _ in range(2):
        assert checked(rankdeck, qtbot) == f"Rankdeck {__version__} is the newest version."
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
    rankdeck.settings.set_text(updates_controller.ADDRESS, announcer.url)
    announcer.paths["/update.json"] = (200, {}, [b"{", b"}"])
    announcer.release_pieces.clear()  # the second piece never comes
    assert "did not answer in time" in checked(rankdeck, qtbot)
    announcer.release_pieces.set()
    monkeypatch.setattr(updates_controller, "ANSWER_LIMIT_MS", LIMIT_MS)
    announcer.answer(b" " * (updates_controller.LARGEST_ANSWER_BYTES + 1))
    assert "sent too much" in checked(rankdeck, qtbot)
    for place, says in (("http://example.invalid/", "failed"), (f"{announcer.address}/nothing", "not found")):
        rankdeck.settings.set_text(updates_controller.ADDRESS, place)
        assert says in checked(rankdeck, qtbot).lower()


@pytest.mark.parametrize(
    "text", ["https://[", "https://a:99999/", "http://example.org", "ftp://a/", "https://me:x@a.org/", "https://", "x"]
)
def test_an_address_that_is_none_or_not_safe_is_refused(text: str) -> None:
    for safe in ("https://example.org/u.json", "http://127.0.0.1:8000/", "http://[::1]/x"):
        check_address(safe)
    with pytest.raises(UpdateError):
        check_address(text)


@pytest.mark.parametrize(
    "data",
    [
        b"<html>",
        b"[]",
        b'{"format": "other", "version": 1, "release": "0.2.0"}',
        b'{"format": "rankdeck-update", "version": 2, "release": "0.2.0"}',
        b'{"format": "rankdeck-update", "version": 1, "release": "new"}',
        b'{"format": "rankdeck-update", "version": 1, "release": "0.2.0", "page": "javascript:x"}',
    ],
)
def test_any_other_answer_is_refused(data: bytes) -> None:
    with pytest.raises(UpdateError):
        read_announcement(data, "https://a.org/u.json")


def test_releases_are_compared_by_their_numbers() -> None:
    assert is_newer("0.10.0", "0.9.9") and is_newer("1.0", "0.9.9.9") and not is_newer("0.2", "0.2.0.dev1")
