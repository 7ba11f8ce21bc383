"""Downloads from a real server that breaks off, is slow, knows no ranges, or sends something else."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from core.environments import downloads
from core.environments.downloads import CancelledError, DownloadError, download
from core.environments.pip_report import Wheel

pytestmark = pytest.mark.windows
CONTENT = bytes(range(256)) * 8192  # 2 MiB
SHA = hashlib.sha256(CONTENT).hexdigest()
NAME = "torch-2.13.0-py3-none-any.whl"


class Server(ThreadingHTTPServer):
    """Serves `CONTENT`; how is set by the test."""

    content = CONTENT
    break_after = len(CONTENT)
    ranges = True
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def wheel(self) -> Wheel:
        return Wheel("torch", "2.13.0", f"http://127.0.0.1:{self.server_address[1]}/{NAME}", SHA)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        self._begin(0)

    def do_GET(self) -> None:
        server = self.server
        asked = self.headers.get("Range", "")
        server.asked.append(asked)
        found = re.fullmatch(r"bytes=(\d+)-", asked)
        start = int(found[1]) if found and server.ranges else 0
        if start >= len(server.content) and found and server.ranges:
            self.send_error(416)
            return
        if self._begin(start):
            self.wfile.write(server.content[start : start + server.break_after])

    def _begin(self, start: int) -> bool:
        server = self.server
        if server.status != 200:
            self.send_error(server.status)
            return False
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(server.content) - start))
        self.end_headers()
        return True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(downloads, "_LONGEST_PAUSE_S", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.02))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def fetch(server: Server, folder: Path) -> list[int]:
    told: list[int] = []
    path = download(server.wheel, folder, told.append, lambda: False)
    assert path == folder / NAME and path.read_bytes() == CONTENT
    assert [entry.name for entry in folder.iterdir()] == [NAME]
    return told


def test_a_file_is_downloaded_once(server: Server, tmp_path: Path) -> None:
    assert sum(fetch(server, tmp_path)) == len(CONTENT)
    assert fetch(server, tmp_path) == [len(CONTENT)]
    assert server.asked == [""]


def test_a_connection_that_breaks_is_continued_as_often_as_it_brings_something(server: Server, tmp_path: Path) -> None:
    server.break_after = 150_000
    assert sum(fetch(server, tmp_path)) == len(CONTENT)
    assert server.asked == ["", *(f"bytes={start}-" for start in range(150_000, len(CONTENT), 150_000))]


@pytest.mark.parametrize(
    ("there", "ranges", "asked"),
    [(b"other bytes", False, "bytes=11-"), (CONTENT[:9000], True, "bytes=9000-"), (CONTENT, True, "bytes=2097152-")],
    ids=["no ranges", "a part", "all"],
)
def test_what_was_there_is_counted_and_continued(
    server: Server, tmp_path: Path, there: bytes, ranges: bool, asked: str
) -> None:
    server.ranges = ranges
    (tmp_path / f"{NAME}.part").write_bytes(there)
    told = fetch(server, tmp_path)
    assert told[0] == len(there) and sum(told) == len(CONTENT)
    assert server.asked == [asked]


def test_something_else_is_refused_and_not_kept(server: Server, tmp_path: Path) -> None:
    server.content = b"<html>Please sign in</html>"
    with pytest.raises(DownloadError, match="differs from what the package index promised"):
        download(server.wheel, tmp_path, lambda _: None, lambda: False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_longer_than_it_should_be_is_begun_again_the_next_time(server: Server, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT + b"more")
    with pytest.raises(DownloadError, match="differs"):
        download(server.wheel, tmp_path, lambda _: None, lambda: False)
    fetch(server, tmp_path)


@pytest.mark.parametrize(("status", "times"), [(404, 1), (503, downloads.ATTEMPTS)])
def test_a_server_that_fails_is_asked_a_few_times(server: Server, tmp_path: Path, status: int, times: int) -> None:
    server.status = status
    with pytest.raises(DownloadError, match=f"answered {status}"):
        download(server.wheel, tmp_path, lambda _: None, lambda: False)
    assert len(server.asked) == times


@pytest.mark.usefixtures("server")
def test_a_server_that_is_gone_is_named(tmp_path: Path) -> None:
    wheel = Wheel("torch", "2.13.0", "http://127.0.0.1:1/torch-2.13.0-py3-none-any.whl", SHA)
    with pytest.raises(DownloadError, match=r"The connection to 127\.0\.0\.1 broke") as failed:
        download(wheel, tmp_path, lambda _: None, lambda: False)
    assert "what has arrived is kept" in failed.value.next_step


def test_stopping_keeps_what_has_arrived(server: Server, tmp_path: Path) -> None:
    arrived: list[int] = []
    with pytest.raises(CancelledError):
        download(server.wheel, tmp_path, arrived.append, lambda: sum(arrived) > 500_000)
    part = tmp_path / f"{NAME}.part"
    assert 500_000 < part.stat().st_size < len(CONTENT)
    assert CONTENT.startswith(part.read_bytes())
    fetch(server, tmp_path)
