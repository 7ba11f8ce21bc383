"""pip's report: the wheels in it, and what is refused."""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from core.environments.pip_report import ReportError, Wheel, file_sizes, parse_report

SHA = "ab" * 32


def item(url: str = "https://index/numpy-2.4.6-cp311-cp311-win_amd64.whl", **other: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "numpy", "version": "2.4.6"},
        "download_info": {"url": url, "archive_info": {"hashes": {"sha256": SHA}}},
        **other,
    }


def report(*items: dict[str, Any]) -> str:
    return json.dumps({"version": "1", "install": items})


def test_each_wheel_is_named_with_its_hash_and_its_place() -> None:
    plain, local = parse_report(
        report(item(), item("file:///C:/my%20wheels/torch-2.13.0%2Bcpu-cp311-cp311-win_amd64.whl"))
    )
    assert plain == Wheel("numpy", "2.4.6", "https://index/numpy-2.4.6-cp311-cp311-win_amd64.whl", SHA)
    assert plain.file_name == "numpy-2.4.6-cp311-cp311-win_amd64.whl"
    assert local.file_name == "torch-2.13.0+cpu-cp311-cp311-win_amd64.whl"
    assert parse_report(report()) == ()


def test_a_hash_may_be_written_as_older_versions_of_pip_do() -> None:
    url = "https://index/numpy-2.4.6-cp311-cp311-win_amd64.whl"
    (wheel,) = parse_report(report(item(download_info={"url": url, "archive_info": {"hash": f"sha256={SHA}"}})))
    assert wheel.sha256 == SHA
    with pytest.raises(ReportError, match="no SHA-256"):
        parse_report(report(item(download_info={"url": url, "archive_info": {"hash": "md5=1"}})))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        report({"metadata": {}}),
        report(item("ftp://index/a.whl")),
        report(item("https://index/a.tar.gz")),
        report(item("https://index/..%5Ca.whl")),
        report(item(download_info={"url": "https://index/a.whl", "archive_info": {"hashes": {"md5": "1"}}})),
        report(item(download_info={"url": "https://index/a.whl", "archive_info": {"hashes": {"sha256": "short"}}})),
        report(item(download_info={"url": "https://index/a.git", "vcs_info": {}})),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ReportError, match="could not be read"):
        parse_report(text)


class Handler(BaseHTTPRequestHandler):
    """Knows one file, says its size unless asked for another."""

    def do_HEAD(self) -> None:
        self.send_response(404 if "gone" in self.path else 200)
        if "silent" not in self.path:
            self.send_header("Content-Length", "6000")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_sizes_are_asked_for_and_unknown_where_no_server_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    local = tmp_path / "größe-1.0-py3-none-any.whl"
    local.write_bytes(b"wheel")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.02))
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        urls = [f"{address}/{name}" for name in ("a.whl", "gone.whl", "silent.whl")]
        urls += ["http://127.0.0.1:1/a.whl", local.as_uri(), (tmp_path / "missing.whl").as_uri()]
        wheels = [Wheel("a", "1.0", url, SHA) for url in urls]
        assert file_sizes(wheels) == (6000, None, None, None, 5, None)
        assert file_sizes(wheels[:1], lambda: True) == (None,)
        server.shutdown()
        thread.join()
    assert wheels[0].local_path is None and wheels[4].local_path == local
