"""Single instance: one window for each user and folder of runs. A second start hands its arguments over and ends.

A lock that the system releases with its process decides who is first, so a window that died is never waited for. The
first one then listens on a socket in a folder of the user's own (Windows: a pipe that only this user may open).
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from core.errors import RankdeckError, RunBusyError
from core.parsing import ParseError, parse_json
from core.paths import data_folder
from core.processes.lock import RunLock

WINDOW: Final = "--window"
# So long a second start waits for one that may just be opening; then it opens a window of its own.
HAND_OVER_LIMIT_S: Final = 30.0
ANSWER_MS: Final = 3000
LARGEST_BYTES: Final = 64 * 1024
MOST_ARGUMENTS: Final = 64
_PAUSE_S: Final = 0.1
_DONE: Final = b"done\n"
_ANY_PROCESS: Final = 0xFFFFFFFF  # ASFW_ANY
_log = logging.getLogger(__name__)


class SingleInstance(QObject):
    """The right to be the one window, held until `close` or the end of the process.

    Args:
        lock: None where no lock can be had, and every start opens a window.
        place: The path of its lock and its socket, without their suffix.

    Signals:
        arrived: The arguments of a second start.
    """

    arrived = Signal(list)

    def __init__(self, lock: RunLock | None, place: Path) -> None:
        super().__init__()
        self._lock = lock
        self._place = place
        self._server = QLocalServer(self, socketOptions=QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connected)

    def listen(self) -> bool:
        """Take second starts from now on; return False where that is not possible."""
        if self._lock is None:
            return False
        name = socket_name(self._place)
        # Of a window that died: the lock is ours, so nothing listens there.
        QLocalServer.removeServer(name)
        if not self._server.listen(name):
            _log.warning("a second start will open a second window: %s", self._server.errorString())
        return self._server.isListening()

    def close(self) -> None:
        """Take no more starts; the next one opens a window."""
        self._server.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _on_connected(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.disconnected.connect(socket.deleteLater)
            socket.readyRead.connect(functools.partial(self._on_read, socket))
            self._on_read(socket)

    def _on_read(self, socket: QLocalSocket) -> None:
        if not socket.canReadLine() and socket.bytesAvailable() <= LARGEST_BYTES:
            return
        arguments = read_arguments(bytes(socket.readLine(LARGEST_BYTES).data()))
        if arguments is None:
            socket.abort()
            return
        socket.write(_DONE)
        socket.disconnectFromServer()
        self.arrived.emit(arguments)


def claim(runs_dir: Path, arguments: Sequence[str]) -> SingleInstance | None:
    """Make this process the one window for a folder of runs; None if another one is and has taken the arguments."""
    place = instance_place(runs_dir)
    deadline = time.monotonic() + HAND_OVER_LIMIT_S
    while True:
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return SingleInstance(RunLock(place.with_suffix(".lock")), place)
        except RunBusyError:
            if hand_over(place, arguments, deadline):
                return None
        except (RankdeckError, OSError) as error:
            _log.warning("a second start will open a second window: %s", error)
            return SingleInstance(None, place)
        if time.monotonic() >= deadline:
            _log.warning("another window of Rankdeck is open and does not answer; this is a second one")
            return SingleInstance(None, place)
        time.sleep(_PAUSE_S)


def hand_over(place: Path, arguments: Sequence[str], deadline: float) -> bool:
    """Give the open window the arguments; return whether it has taken them."""
    _let_come_forward()
    socket = QLocalSocket()
    try:
        socket.connectToServer(socket_name(place))
        if not socket.waitForConnected(ANSWER_MS):
            return False  # it has not begun to listen
        socket.write(json.dumps({"arguments": list(arguments)}).encode() + b"\n")
        while not socket.canReadLine():
            left_ms = round((deadline - time.monotonic()) * 1000)  # it answers once it is open
            if left_ms <= 0 or not socket.waitForReadyRead(left_ms):
                return False
        return bytes(socket.readLine().data()) == _DONE
    finally:
        socket.abort()


def read_arguments(line: bytes) -> list[str] | None:
    """Arguments in the message of a second start; None for any other bytes."""
    try:
        message = parse_json(line)
    except ParseError:
        return None
    arguments = message.get("arguments") if isinstance(message, dict) else None
    if not isinstance(arguments, list) or len(arguments) > MOST_ARGUMENTS:
        return None
    return arguments if all(isinstance(argument, str) for argument in arguments) else None


def instance_folder() -> Path:
    """A folder that only this user can write; short, because a socket's path must be."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if sys.platform == "linux" and runtime and Path(runtime).is_absolute():
        return Path(runtime) / "rankdeck"
    return data_folder() / "open-windows"


def instance_place(runs_dir: Path) -> Path:
    key = hashlib.sha256(os.path.normcase(runs_dir.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return instance_folder() / key


def socket_name(place: Path) -> str:
    # Of a name that all users share: the folder says whose it is.
    if sys.platform == "win32":
        return f"rankdeck-{hashlib.sha256(os.path.normcase(place).encode()).hexdigest()[:32]}"
    return str(place.with_suffix(".socket"))


def _let_come_forward() -> None:
    """Allow the open window to come forward: Windows asks the process that has the keyboard."""
    if sys.platform == "win32":
        import ctypes

        ctypes.WinDLL("user32").AllowSetForegroundWindow(ctypes.c_uint32(_ANY_PROCESS))


def with_full_paths(arguments: Sequence[str]) -> list[str]:
    """The arguments with absolute paths, for a process in another folder."""
    return [str(Path(argument).absolute()) if _is_path(argument) else argument for argument in arguments]


def run_to_show(arguments: Sequence[str]) -> Path | None:
    """The run that the arguments name; None if there is none."""
    if not arguments or arguments[0] != WINDOW:
        return None
    path = next((Path(argument) for argument in arguments[1:2] if _is_path(argument)), None)
    return path.absolute() if path is not None and path.is_dir() else None


def _is_path(argument: str) -> bool:
    return bool(argument) and not argument.startswith("-") and Path(argument).exists()
