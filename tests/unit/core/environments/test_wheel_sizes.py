"""Sizes of wheels: from the end of a file alone, and unknown where no server says."""

from __future__ import annotations

import re
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from core.environments.pip_report import Wheel
from core.environments.wheel_sizes import TAIL, WheelSize, local_path, measure, measure_all

pytestmark = pytest.mark.windows
SHA = "ab" * 32
LIBRARY, MODULE = 733 * 4096, 2 * 4096  # in blocks; a module has its byte code beside it


class Server(ThreadingHTTPServer):
    """Serves one file, in parts or whole, and counts what it sent."""

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.ranges, self.status, self.says_length = True, 200, True
        self.sent = 0

    @property
    def wheel(self) -> Wheel:
        return Wheel("torch", "2.13.0", f"http://127.0.0.1:{self.server_address[1]}/torch-2.13.0-py3-none-any.whl", SHA)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, total = self.server, len(self.server.content)
        if server.status != 200:
            self.send_error(server.status)
            return
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        start, end = 0, total
        if found and server.ranges:
            start = int(found[1]) if found[1] else max(0, total - int(found[2]))
            end = int(found[2]) + 1 if found[1] and found[2] else total
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{total}")
        else:
            self.send_response(200)
        if server.says_length:
            self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if server.ranges:  # a whole file is not read to its end: nothing here waits for that
            server.sent += end - start  # before who asked has it, and looks
            self.wfile.write(server.content[start:end])

    def log_message(self, *_: object) -> None:
        pass


def archive(folder: Path, files: int) -> Path:
    """A wheel: an incompressible library and many small modules."""
    path = folder / "torch-2.13.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("torch/lib/torch_cpu.dll", bytes(3_000_000), zipfile.ZIP_STORED)
        for number in range(files):
            written.writestr(f"torch/module_with_a_long_name_{number}.py", "x = 1\n")
    return path


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server(archive(tmp_path, 10).read_bytes())
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.02))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_end_of_a_file_says_what_is_in_it(server: Server) -> None:
    assert measure(server.wheel) == WheelSize(len(server.content), LIBRARY + 10 * MODULE)
    assert server.sent == TAIL


def test_a_long_list_of_files_takes_one_more_part(server: Server, tmp_path: Path) -> None:
    server.content = archive(tmp_path, 2000).read_bytes()
    assert measure(server.wheel) == WheelSize(len(server.content), LIBRARY + 2000 * MODULE)
    assert server.sent < 500_000


def test_a_server_without_parts_says_the_size_of_the_file_alone(server: Server) -> None:
    server.ranges = False
    assert measure(server.wheel) == WheelSize(len(server.content), None)
    server.says_length = False
    assert measure(server.wheel) == WheelSize(None, None)


@pytest.mark.parametrize("status", [404, 416, 503])
def test_a_server_that_fails_leaves_it_unknown(status: int, server: Server) -> None:
    server.status = status
    assert measure(server.wheel) == WheelSize(None, None)


def test_no_zip_file_is_a_file_of_unknown_content(server: Server) -> None:
    server.content = b"<html>" * 1000
    assert measure(server.wheel) == WheelSize(6000, None)


def test_a_server_that_is_gone_leaves_it_unknown() -> None:
    wheel = Wheel("torch", "2.13.0", "http://127.0.0.1:1/torch-2.13.0-py3-none-any.whl", SHA)
    assert measure_all([wheel, wheel]) == (WheelSize(None, None),) * 2
    assert measure_all([wheel], lambda: True) == (WheelSize(None, None),)


def test_a_file_on_this_machine_is_not_downloaded(tmp_path: Path) -> None:
    path = archive(tmp_path, 1)
    wheel = Wheel("torch", "2.13.0", path.as_uri(), SHA)
    assert local_path(wheel) == path
    assert measure(wheel) == WheelSize(path.stat().st_size, LIBRARY + MODULE, is_local=True)
    path.write_bytes(b"no wheel")
    assert measure(wheel) == WheelSize(None, None, is_local=True)
