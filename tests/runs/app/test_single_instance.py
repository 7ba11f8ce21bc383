"""One window for each user and folder of runs: second starts as real processes, windows that die."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import single_instance
from app.single_instance import SingleInstance, claim, instance_folder, instance_place, read_arguments, socket_name
from tests.helpers.made_runs import make_run
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows]
LIMIT_S = 100.0
Start = Callable[..., "subprocess.Popen[bytes]"]
First = Callable[[Path], SingleInstance]


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where windows are registered: short, because the path of a socket must be."""
    folder = tmp_path_factory.mktemp("w")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return instance_folder()


@pytest.fixture
def start(runs_dir: Path, folder: Path) -> Iterator[Start]:
    """Starts the program as a person does."""
    assert runs_dir and folder
    started: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
        program = subprocess.Popen([sys.executable, "-m", "app", *arguments], env=environment)
        started.append(program)
        return program

    yield run
    for program in started:
        program.kill()
        program.wait(LIMIT_S)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_listening(runs_dir: Path) -> bool:
    client = QLocalSocket()
    client.connectToServer(socket_name(instance_place(runs_dir)))
    answers = client.waitForConnected(1000)
    client.abort()
    return answers


@pytest.fixture
def first_window(qapp: QApplication) -> Iterator[First]:
    """Takes the place of the one window, and keeps it: Wine aborts who deletes it just after a second start."""
    taken: list[SingleInstance] = []

    def take(runs_dir: Path) -> SingleInstance:
        instance = claim(runs_dir, [])
        assert instance is not None and instance.listen()
        taken.append(instance)
        return instance

    yield take
    for instance in taken:
        instance.close()
        qapp.processEvents()


@pytest.mark.qt_log_ignore("This plugin does not support (raise|propagateSizeHints)", extend=True)
def test_a_second_start_brings_the_window_forward_and_shows_its_run(
    open_window: OpenWindow, qtbot: QtBot, start: Start, first_window: First, runs_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_bytes(b"some text\n" * 9000)
    run = make_run(tmp_path, runs_dir=runs_dir)
    rankdeck = open_window()
    instance = first_window(runs_dir)
    instance.arrived.connect(rankdeck.on_started_again)
    rankdeck.window.showMinimized()
    second = start("--window", str(run.dir))
    qtbot.waitUntil(lambda: second.poll() is not None, timeout=round(LIMIT_S * 1000))
    assert second.returncode == 0
    qtbot.waitUntil(lambda: rankdeck.showing.run_dir == run.dir)
    assert not rankdeck.window.windowState() & Qt.WindowState.WindowMinimized
    instance.close()


def test_of_three_starts_at_once_one_window_opens(start: Start, runs_dir: Path) -> None:
    programs = [start() for _ in range(3)]
    wait_for(lambda: sum(program.poll() is None for program in programs) == 1)
    assert sorted(program.poll() or 0 for program in programs) == [0, 0, 0]
    wait_for(lambda: is_listening(runs_dir))


def test_the_place_of_a_window_that_was_killed_is_free(
    start: Start, first_window: First, runs_dir: Path, qtbot: QtBot
) -> None:
    assert qtbot
    killed = start()
    wait_for(lambda: is_listening(runs_dir))
    killed.kill()
    killed.wait(LIMIT_S)
    first_window(runs_dir).close()
    assert not is_listening(runs_dir)


def test_another_folder_of_runs_has_a_window_of_its_own(
    first_window: First, folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    assert folder and qtbot
    first, other = first_window(tmp_path / "a"), first_window(tmp_path / "b")
    first.close()
    other.close()


def test_a_window_that_does_not_answer_blocks_no_start(
    runs_dir: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    assert folder and qtbot
    monkeypatch.setattr(single_instance, "HAND_OVER_LIMIT_S", 0.5)
    monkeypatch.setattr(single_instance, "ANSWER_MS", 200)
    silent = claim(runs_dir, [])
    assert silent is not None
    second = claim(runs_dir, [])
    assert second is not None and not second.listen()
    assert silent.listen()  # it takes connections only when this thread gets to it
    third = claim(runs_dir, [])
    assert third is not None
    silent.close()


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe cannot be opened with a plain socket")
def test_what_is_no_start_is_sent_away(first_window: First, runs_dir: Path, folder: Path, qtbot: QtBot) -> None:
    instance = first_window(runs_dir)
    arrived: list[list[str]] = []
    instance.arrived.connect(arrived.append)
    (place,) = folder.glob("*.socket")
    assert place.stat().st_mode & 0o077 == 0
    for sent in (b"nonsense\n", b'{"arguments": [1]}\n', b"x" * (1 << 17)):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(LIMIT_S)
            client.connect(str(place))
            client.setblocking(False)
            try:
                client.sendall(sent)
            except BlockingIOError:
                pass
            qtbot.waitUntil(lambda client=client: is_closed(client))  # type: ignore[misc]
    assert arrived == []
    instance.close()


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(16) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_only_texts_are_arguments() -> None:
    assert read_arguments(b'{"arguments": ["--window", "a"]}') == ["--window", "a"]
    for line in (b"", b"[]", b'{"arguments": "a"}', b'{"arguments": [[]]}', b"\xff"):
        assert read_arguments(line) is None
