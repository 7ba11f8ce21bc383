"""Asking a real server for updates, and downloading from it."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import RankdeckError
from core.updates import server as module
from core.updates.announcement import Announcement, UpdateError
from core.updates.server import StoppedError, ask, download
from tests.helpers.update_server import UpdateServer, update_server

pytestmark = pytest.mark.windows
SETUP = bytes(range(256)) * 400


@pytest.fixture
def server() -> Iterator[UpdateServer]:
    with update_server() as running:
        yield running


def announced(server: UpdateServer, **changes: object) -> Announcement:
    server.announce("0.2.0", SETUP, **changes)
    return ask(server.url)


def fetch(announcement: Announcement, folder: Path) -> Path:
    return download(announcement, folder, lambda _: None, lambda: False)


def test_one_request_that_says_nothing_of_this_pc(server: UpdateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    server.announce("0.2.0", SETUP)
    server.paths["/update.json"][1]["Set-Cookie"] = "id=1"
    for _ in range(2):
        assert ask(server.url).release == "0.2.0"
    assert [line for line, _ in server.asked] == ["GET /update.json HTTP/1.1"] * 2
    for _, headers in server.asked:
        assert headers.pop("host") in server.address
        assert headers == {"user-agent": "Rankdeck", "accept-encoding": "identity", "connection": "close"}


def test_a_setup_is_checked_and_taken_once(server: UpdateServer, tmp_path: Path) -> None:
    announcement = announced(server)
    folder = tmp_path / "updates"
    folder.mkdir()
    (folder / "Rankdeck-Setup-0.1.5.exe").write_bytes(b"earlier")
    arrived: list[int] = []
    file = download(announcement, folder, arrived.append, lambda: False)
    assert file.name == "Rankdeck-Setup-0.2.0.exe" and file.read_bytes() == SETUP and arrived[-1] == len(SETUP)
    assert list(folder.iterdir()) == [file]
    asked = len(server.asked)
    assert fetch(announcement, folder) == file and len(server.asked) == asked
    file.write_bytes(b"damaged")
    assert fetch(announcement, folder).read_bytes() == SETUP


@pytest.mark.parametrize("body", [SETUP[:-1], SETUP + b"x", b"y" * len(SETUP), SETUP * 50])
def test_what_differs_from_the_announcement_is_thrown_away(server: UpdateServer, tmp_path: Path, body: bytes) -> None:
    announcement = announced(server)
    server.paths["/Setup.exe"] = (200, {}, [body])
    with pytest.raises(UpdateError, match="not the setup that was announced"):
        fetch(announcement, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_connection_that_breaks_and_one_that_is_stopped_leave_nothing(server: UpdateServer, tmp_path: Path) -> None:
    announcement = announced(server)
    server.paths["/Setup.exe"] = (200, {"Content-Length": str(len(SETUP))}, [SETUP[:5000]])
    with pytest.raises(UpdateError):
        fetch(announcement, tmp_path)
    announced(server)
    with pytest.raises(StoppedError):
        download(announcement, tmp_path, lambda _: None, lambda: True)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_said_before_anything_is_asked(
    server: UpdateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    announcement = announced(server)
    asked = len(server.asked)
    monkeypatch.setattr(module, "SPARE_BYTES", 1 << 60)
    with pytest.raises(RankdeckError, match="no room"):
        fetch(announcement, tmp_path)
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (404, {}, b""),
        (500, {}, b""),
        (302, {"Location": "http://example.org/elsewhere"}, b""),
        (302, {"Location": "file:///etc/passwd"}, b""),
        (200, {}, b"x" * (1 << 20)),
        (200, {"Content-Length": "5000"}, b"{"),
        (200, {}, b"<html>Sign in</html>"),
    ],
)
def test_other_answers_are_a_failed_check(
    server: UpdateServer, status: int, headers: dict[str, str], body: bytes
) -> None:
    server.answer(body, status, {"Connection": "close", **headers})
    with pytest.raises(RankdeckError) as failed:
        ask(server.url)
    assert failed.value.cause and failed.value.next_step


def test_a_server_that_is_not_there_or_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        monkeypatch.setattr(module, "READ_LIMIT_S", 0.3)
        with pytest.raises(UpdateError, match="did not answer in time"):
            ask(f"http://127.0.0.1:{port}/update.json")
    with pytest.raises(UpdateError, match="connection"):
        ask(f"http://127.0.0.1:{port}/update.json")


def test_the_hash_is_the_file_s() -> None:
    with update_server() as server:
        announcement = announced(server)
    assert announcement.setup is not None and announcement.setup.sha256 == hashlib.sha256(SETUP).hexdigest()


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_server_that_drips_is_given_up(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_LIMIT_S", 0.5)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(sent)
                while not ended.wait(0.05):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(UpdateError, match="in time"):
            ask(f"http://127.0.0.1:{listener.getsockname()[1]}/u")
        ended.set()
        thread.join()
