"""`rankdeck preview` refuses what training refuses: too many bad rows, data of the Hub that is not here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.runs.core.cli.test_preview import TEXTS, as_json, preview

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
SIZES = {"train.parquet": 12_000_000, "test.parquet": 300_000}


def write(path: Path, good: int, bad: int, more: str = "") -> Path:
    rows = [json.dumps({"text": f"{TEXTS[number % len(TEXTS)]}{more} {number}"}) for number in range(good)]
    path.write_text("\n".join(["{broken"] * bad + rows) + "\n", encoding="utf-8")
    return path


def test_five_percent_of_bad_rows_are_left_out_and_told(tmp_path: Path) -> None:
    found = as_json("--dataset-file", str(write(tmp_path / "rows.jsonl", 95, 5)), "--seq-len", "32")
    assert (found["counts"]["rows"], found["counts"]["bad"], found["exact"]) == (100, {"broken": 5}, True)
    assert found["remarks"] == []


@pytest.mark.parametrize("more", [(), ("--all",)])
def test_more_than_five_percent_are_refused_as_by_train(tmp_path: Path, more: tuple[str, ...]) -> None:
    path = write(tmp_path / "rows.jsonl", 94, 6)
    done = preview("--dataset-file", str(path), "--seq-len", "32", *more)
    title, cause, next_step = done.stderr.splitlines()
    assert (done.returncode, title) == (2, "Too many rows are bad")
    assert cause.startswith("6 of 100 rows are bad: 6 broken; the limit is 5 %. The first: rows.jsonl, line 1")
    assert "max_bad_rows" in next_step
    found = as_json("--dataset-file", str(path), "--seq-len", "32", "--set", "max_bad_rows=6", *more)
    assert found["counts"]["documents"] == 94


def test_of_a_beginning_it_is_said_what_training_would_do(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", 40, 10, " Words." * 150_000)  # more than is looked at
    found = as_json("--dataset-file", str(path), "--seq-len", "32", "--documents", "1")
    assert not found["exact"]
    assert found["remarks"][0].startswith("If all of the data is like its beginning, training refuses it. 10 of ")
    assert "the limit is 5 %" in found["remarks"][0]


class _Hub(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path.partition("?")[0])
        files = [{"rfilename": name, "size": size} for name, size in SIZES.items()]
        body = json.dumps({"id": "owner/name", "siblings": files}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No line on stderr for a request."""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a Hub on this machine was asked for; nothing of it is in the cache."""
    paths: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Hub", (_Hub,), {"asked": paths}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HF_DATASETS_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    yield paths
    server.shutdown()
    server.server_close()
    thread.join()


def preview_with_package(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """As `preview`, where the `datasets` package need not be there: before a download nothing imports it."""
    (folder / "datasets.py").write_text("raise SystemExit('datasets is imported')", encoding="utf-8")
    program = "import runpy, sys; sys.path.append(sys.argv.pop(1)); runpy.run_module('core', run_name='__main__')"
    command = [sys.executable, "-c", program, str(folder), "preview", "--devices", "cpux2", "--mode", "ddp", *words]
    return subprocess.run(
        command, env={**os.environ, "PYTHONUTF8": "1"}, capture_output=True, encoding="utf-8", timeout=100, check=False
    )


def test_data_of_the_hub_is_refused_with_its_size(asked: list[str], tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub", reason="the Hub is asked by the huggingface_hub package")
    done = preview_with_package(tmp_path, "--dataset-file", "hf://owner/name")
    title, cause, next_step = done.stderr.splitlines()
    assert (done.returncode, title) == (2, "The dataset must be downloaded first")
    assert cause == ("hf://owner/name is not on this machine, and downloads are off. It has 2 files of 12.3 MB in all.")
    assert "allow_download=true" in next_step and str(tmp_path / "hf") in next_step
    assert asked == ["/api/datasets/owner/name"], "it is asked how large it is, and nothing else"
    assert not (tmp_path / "hf" / "datasets").exists()
