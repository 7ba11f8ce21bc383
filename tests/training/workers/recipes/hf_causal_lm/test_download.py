"""Models of the Hub: found in the cache, fetched from a server on this machine's loopback, refused with one message."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("huggingface_hub", reason="downloads are its business")

from rankdeck.recipe import ConfigError
from tests.helpers.rank_processes import run_ranks
from tests.helpers.wine import not_under_wine
from workers.recipes.hf_causal_lm.source import find_source, local_folder

no_links = not_under_wine("reports a symbolic link as made, and makes none; the Hub's cache consists of them")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": b"{}",
    "model.safetensors": b"\x02\x00\x00\x00\x00\x00\x00\x00{}" + bytes(1000),
    "pytorch_model.bin": b"never to be fetched",
    "README.md": b"# A model",
}


class Hub(BaseHTTPRequestHandler):
    """The answers of the Hub's API that a download asks for."""

    files = FILES
    asked: list[str] = []  # noqa: RUF012, one server a test

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        if self.path.startswith("/api/models/owner/name/tree"):
            tree = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in self.files.items()
            ]
            self._send(json.dumps(tree).encode(), "application/json")
            return
        if self.path.startswith("/api/models/owner/name"):
            siblings = [{"rfilename": name, "size": len(data)} for name, data in self.files.items()]
            answer = {"id": "owner/name", "modelId": "owner/name", "sha": COMMIT, "siblings": siblings, "tags": []}
            self._send(json.dumps(answer).encode(), "application/json")
            return
        name = self.path.rpartition("/")[2]
        if "/owner/name/resolve/" in self.path and name in self.files:
            self._send(self.files[name], "application/octet-stream")
            return
        self.send_error(404)

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def hub() -> Iterator[str]:
    """A Hub with one model, on this machine's loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Hub.asked, Hub.files = [], FILES
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def fetch_model(_: object) -> dict[str, Any]:
    said: list[str] = []
    try:
        return {"folder": str(local_folder(find_source("owner/name"), True, said.append)), "said": said}
    except ConfigError as error:
        return {"title": error.title, "cause": error.cause, "next_step": error.next_step, "said": said}


def fetched(folder: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> dict[str, Any]:
    """What a process of its own says of fetching owner/name: huggingface_hub reads its settings when it is imported."""
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_HOME", str(folder / "hf"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return run_ranks(fetch_model, 1, folder, fresh=True)[0]


@no_links
def test_a_download_says_what_it_fetches_before_it_does_and_is_found_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: str
) -> None:
    found = fetched(tmp_path, monkeypatch, hub)
    size = sum(len(FILES[name]) for name in ("config.json", "tokenizer.json", "model.safetensors"))
    assert found["said"] == [f"downloading owner/name: 3 files, {size / 1e6:.1f} MB"]
    folder = Path(found["folder"])
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert not any("pytorch_model" in path or "README" in path for path in Hub.asked)
    source = find_source("owner/name")
    assert source.folder is not None and source.folder.samefile(folder), "the next run needs no network"
    assert local_folder(source, False, lambda _: None) == source.folder


def test_a_model_with_nothing_but_pickles_is_refused_before_it_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: str
) -> None:
    Hub.files = {name: data for name, data in FILES.items() if not name.endswith(".safetensors")}
    found = fetched(tmp_path, monkeypatch, hub)
    assert "no safetensors files" in found["cause"] and found["said"] == []
    assert not any("resolve" in path for path in Hub.asked)


def test_a_hub_that_does_not_answer_is_said_in_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = fetched(tmp_path, monkeypatch, "http://127.0.0.1:9")  # nothing listens there
    assert found["title"] == "The model could not be downloaded" and "owner/name" in found["cause"]
    assert "--model FOLDER" in found["next_step"]
