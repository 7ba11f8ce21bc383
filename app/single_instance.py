"""Single instance: one window for each user and folder of runs. A second start hands its arguments over and ends.

A lock that the system releases with its process decides who is first, so a window that died is never waited for. The
first one then listens on a socket in a folder of the user's own (Windows: a pipe with a name that cannot be guessed and
that only this user may open).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from core.errors import RankdeckError, RunBusyError
from core.files.atomic import write_atomic
from core.held_files import read_utf8
from core.parsing import ParseError, parse_json
from core.paths import data_folder
from core.processes.lock import RunLock

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
        lock: Held; None where no lock can be had, and every start opens a window.
        name_file: Where the name of the socket is written.

    Signals:
        arrived: The arguments of a second start.
    """

    arrived = Signal(list)

    def __init__(self, lock: RunLock | None, name_file: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = lock
        self._name_file = name_file
        self._server: QLocalServer | None = None
        self._open: dict[QLocalSocket, QTimer] = {}

    def listen(self) -> bool:
        """Takes second starts from now on; False where that is not possible."""
        if self._lock is None:
            return False
        server = QLocalServer(self)
        server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        server.newConnection.connect(self._on_connected)
        name = _socket_name(self._name_file)
        QLocalServer.removeServer(name)  # of a window that died: the lock is ours, so nothing listens there
        if not server.listen(name):
            _log.warning("a second start will open a second window: %s", server.errorString())
            server.deleteLater()
            return False
        try:
            write_atomic(self._name_file, name)
        except RankdeckError as error:
            _log.warning("a second start will open a second window: %s", error)
            server.close()
            return False
        self._server = server
        return True

    def close(self) -> None:
        """Takes no more starts; the next one opens a window."""
        for socket in list(self._open):
            self._drop(socket)
        if self._server is not None:
            self._server.close()
            self._server = None
            with contextlib.suppress(OSError):
                self._name_file.unlink()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _on_connected(self) -> None:
        while self._server is not None and (socket := self._server.nextPendingConnection()) is not None:
            timer = QTimer(self, singleShot=True, interval=ANSWER_MS)  # one that sends nothing is not kept
            self._open[socket] = timer  # the wrappers must live as long as what Qt holds
            timer.timeout.connect(functools.partial(self._drop, socket))
            socket.disconnected.connect(functools.partial(self._drop, socket))
            socket.readyRead.connect(functools.partial(self._on_read, socket))
            timer.start()
            self._on_read(socket)

    def _drop(self, socket: QLocalSocket) -> None:
        """Ends a connection, once."""
        timer = self._open.pop(socket, None)
        if timer is not None:
            timer.stop()
            timer.deleteLater()
            socket.abort()
            socket.deleteLater()

    def _on_read(self, socket: QLocalSocket) -> None:
        if socket not in self._open:
            return
        if not socket.canReadLine():
            if socket.bytesAvailable() > LARGEST_BYTES:
                self._drop(socket)
            return
        arguments = read_arguments(bytes(socket.readLine(LARGEST_BYTES).data()))
        if arguments is None:
            self._drop(socket)
            return
        socket.write(_DONE)
        socket.disconnectFromServer()
        self.arrived.emit(arguments)


def claim(runs_dir: Path, arguments: Sequence[str], folder: Path | None = None) -> SingleInstance | None:
    """Makes this process the one window; None if another one is and has taken the arguments.

    Args:
        runs_dir: Windows for other folders of runs do not matter.
        arguments: Handed over.
        folder: Where lock and socket are kept; None: a folder of this user's.
    """
    name_file = _name_file(runs_dir, instance_folder() if folder is None else folder)
    deadline = time.monotonic() + HAND_OVER_LIMIT_S
    while True:
        try:
            name_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return SingleInstance(RunLock(name_file.with_suffix(".lock")), name_file)
        except RunBusyError:
            if hand_over(name_file, arguments, deadline):
                return None
        except (RankdeckError, OSError) as error:
            _log.warning("a second start will open a second window: %s", error)
            return SingleInstance(None, name_file)
        if time.monotonic() >= deadline:
            _log.warning("another window of Rankdeck is open and does not answer; this is a second one")
            return SingleInstance(None, name_file)
        time.sleep(_PAUSE_S)


def hand_over(name_file: Path, arguments: Sequence[str], deadline: float) -> bool:
    """Gives the window that is open the arguments; True once it has taken them."""
    try:
        name = read_utf8(name_file)
    except OSError:
        return False  # it has not begun to listen
    _let_come_forward()
    socket = QLocalSocket()
    try:
        socket.connectToServer(name)
        if not socket.waitForConnected(ANSWER_MS):
            return False
        socket.write(json.dumps({"arguments": list(arguments)}).encode() + b"\n")
        while not socket.canReadLine():
            left_ms = round((deadline - time.monotonic()) * 1000)  # it answers once it is open
            if left_ms <= 0 or not socket.waitForReadyRead(left_ms):
                return False
        return bytes(socket.readLine().data()) == _DONE
    finally:
        socket.abort()


def read_arguments(line: bytes) -> list[str] | None:
    """What a second start has sent; None if it is not that."""
    try:
        message = parse_json(line)
    except ParseError:
        return None
    arguments = message.get("arguments") if isinstance(message, dict) else None
    if not isinstance(arguments, list) or len(arguments) > MOST_ARGUMENTS:
        return None
    return arguments if all(isinstance(argument, str) for argument in arguments) else None


def instance_folder() -> Path:
    """A folder that only this user can write: short, because the path of a socket must be."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if sys.platform == "linux" and runtime and Path(runtime).is_absolute():
        return Path(runtime) / "rankdeck"
    return data_folder() / "open-windows"


def _name_file(runs_dir: Path, folder: Path) -> Path:
    key = hashlib.sha256(os.path.normcase(runs_dir.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return folder / f"{key}.name"


def _socket_name(name_file: Path) -> str:
    if sys.platform == "win32":
        return f"rankdeck-{secrets.token_hex(16)}"
    return str(name_file.with_suffix(".socket"))


def _let_come_forward() -> None:
    """Windows lets a window come forward only if the process that has the keyboard allows it."""
    if sys.platform == "win32":
        import ctypes

        ctypes.WinDLL("user32").AllowSetForegroundWindow(ctypes.c_uint32(_ANY_PROCESS))
