"""A server of updates on loopback, which notes all that it is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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


@contextmanager
def update_server() -> Iterator[UpdateServer]:
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
