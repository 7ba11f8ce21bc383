"""The check that tests leave nothing behind must itself see what is left."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from tests.helpers import leaks

pytestmark = pytest.mark.windows

SLEEP = [sys.executable, "-c", "import sys; sys.stdin.read()"]


def test_a_thread_is_seen_and_its_end_too(tmp_path: Path) -> None:
    before = leaks.Held.now(with_qt=False)
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="dawdler")
    thread.start()
    assert leaks.Held.now(with_qt=False).since(before) == ["thread dawdler"]
    end.set()
    thread.join()
    assert leaks.wait_until_gone(before, False, tmp_path, 5.0) == []


def test_a_process_is_seen_and_ended(tmp_path: Path) -> None:
    before = leaks.Held.now(with_qt=False)
    with subprocess.Popen(SLEEP, stdin=subprocess.PIPE) as process:
        (left,) = leaks.wait_until_gone(before, False, tmp_path, 0.0)
        assert left.startswith(f"process {process.pid}: ")
        leaks.end_processes(before, tmp_path)
        process.wait(timeout=10)
    assert leaks.Held.now(with_qt=False).since(before) == []


def test_a_listening_socket_is_seen() -> None:
    before = leaks.Held.now(with_qt=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        (left,) = leaks.Held.now(with_qt=False).since(before)
        assert str(server.getsockname()[1]) in left
    assert leaks.Held.now(with_qt=False).since(before) == []


def test_a_widget_and_a_timer_are_seen(qtbot: QtBot) -> None:
    before = leaks.Held.now(with_qt=True)
    widget = QWidget()
    widget.setObjectName("lost")
    qtbot.addWidget(widget)
    timer = QTimer(widget)
    timer.start(1000)
    left = leaks.Held.now(with_qt=True).since(before)
    assert sorted(left) == ["QTimer '' every 1000 ms, owned by QWidget", "widget QWidget 'lost'"]


def test_a_host_that_does_not_run_any_more_is_no_leak(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait(timeout=30)
    (tmp_path / "host.json").write_text(json.dumps({"pid": process.pid}), encoding="utf-8")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "host.json").write_text('{"pi', encoding="utf-8")
    assert leaks.wait_until_gone(leaks.Held.now(with_qt=False), False, tmp_path, 0.0) == []
