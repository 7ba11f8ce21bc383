"""Session: one SSH connection to a machine, with Rankdeck's own program on the other side of it.

A session begins with the agent, whose text it sends; `become_server` sends this Rankdeck's own files, by their hashes
and only those that changed, and lets its `core.cli.machine_server` answer from then on. So both sides are always of
the same version.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Self, TypeVar, cast

from core.errors import PreflightError, RankdeckError
from core.held_files import read_all
from core.machines import agent
from core.machines.agent import Frames
from core.machines.answers import (
    CHUNK_BYTES,
    LINE_BYTES,
    MOST_FRAMES,
    Devices,
    Failure,
    Hello,
    Missing,
    Output,
    Place,
    Ready,
    unreadable,
)
from core.machines.machine import Machine, MachineError, NotSetUpError, UnreachableError
from core.machines.ssh import agent_command, explain_ssh, ssh_command
from core.machines.tree import Tree, own_code
from core.parsing import ParseError, parse_json, type_text
from core.program_search import NO_WINDOW, find_program
from core.records import RecordError, read_record

HELLO_LIMIT_S: Final = 60.0
ANSWER_LIMIT_S: Final = 120.0
LEAST_BYTES_PER_S: Final = 4096  # slower connections are given up
OLDEST_PYTHON: Final = (3, 11)
_NOISE_BYTES: Final = 1 << 16
_END_LIMIT_S: Final = 5.0
_KEPT_OUTPUT: Final = 1 << 14
# Ssh's exit code when the connection breaks; otherwise that of the program there.
_NO_CONNECTION: Final = 255
_LOOK_THERE: Final = "Try the same on that machine itself."
# The title of `core.launch.preflight.check_torch`.
NO_PYTORCH: Final = "PyTorch is missing"
SERVER: Final = "core.cli.machine_server"
Sent = Callable[[int], None]
T = TypeVar("T")


def find_ssh() -> str:
    """Find the system's own ssh; raises `PreflightError`."""
    found = find_program("ssh")
    if found is None:
        raise PreflightError(
            "This computer has no ssh.",
            "Install OpenSSH. Windows: Settings, Optional features, OpenSSH Client.",
            title="ssh is missing",
        )
    return found


class Session:
    """A connection, for one thread at a time. Ended by `close`, by leaving the block, or when the network goes.

    Args:
        forward: A port of this computer's loopback, and the one there that it leads to.

    Attributes:
        runs_dir: The folder of runs there, once Rankdeck's own program answers.

    Raises:
        PreflightError: This computer has no ssh.
        UnreachableError: There is no connection.
        MachineError: Python there is too old.
    """

    def __init__(self, machine: Machine, forward: tuple[int, int] | None = None) -> None:
        self.machine = machine
        source = read_all(Path(agent.__file__))
        remote = agent_command(machine.starter, len(source))
        argv = ssh_command(find_ssh(), machine, remote, forward=forward)
        try:
            self._ssh = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, creationflags=NO_WINDOW
            )
        except OSError as error:
            raise PreflightError(f"ssh could not be started: {error}.", "Check that it may be executed.") from None
        _open.add(self)
        self.hello: Hello = _NO_HELLO
        self.runs_dir = ""
        self._printed = b""
        self._timed_out = False
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        self._frames = Frames(cast(Any, self._ssh.stdout), cast(Any, self._ssh.stdin))
        try:
            with self._within(HELLO_LIMIT_S):
                self._write(source)
                self.hello = self._hello()
            self._check_python()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        _open.discard(self)
        self._close_stdin()
        try:
            self._ssh.wait(0.5)
        except subprocess.TimeoutExpired:
            self._ssh.kill()
            self._ssh.wait(_END_LIMIT_S)
        self._reader.join(_END_LIMIT_S)
        for stream in (self._ssh.stdout, self._ssh.stderr):
            if stream is not None:
                stream.close()

    def end(self) -> None:
        """End the connection, from any thread; waiting calls in other threads fail."""
        self._ssh.kill()

    # requests

    def ask(self, request: Mapping[str, Any], form: type[T], limit_s: float = ANSWER_LIMIT_S) -> T:
        """Send a request and return its answer, of one of the forms of `core.machines.answers`.

        Raises:
            UnreachableError: The connection broke, or nothing came in time.
            MachineError: The machine refuses.
            ProtocolError: Its answer has another form.
        """
        with self._within(limit_s):
            self._send(request)
            return self._read(form, self._checked(self._receive()))

    def stream(
        self, request: Mapping[str, Any], form: type[T], limit_s: float = ANSWER_LIMIT_S, most: int = MOST_FRAMES
    ) -> Iterator[T]:
        """Send a request and yield the frames that answer it, up to the one with ``"done"``; raises as `ask`.

        Args:
            request: The request.
            form: The form of each frame.
            limit_s: The longest wait for each frame.
            most: The largest number of frames.
        """
        self._send(request)
        for number in itertools.count(1):
            with self._within(limit_s):
                frame = self._checked(self._receive())
            if "done" in frame:
                return
            if number > most:
                raise unreadable(self.machine, f"more than {most:,} frames")
            yield self._read(form, frame)

    def run(self, request: Mapping[str, Any], say: Callable[[str], None], limit_s: float = ANSWER_LIMIT_S) -> int:
        """Has a program run there, hands on each line that it prints, and returns its exit code; raises as `ask`."""
        for output in self.stream(request, Output, limit_s):
            if output.code is not None:
                return output.code
            say(output.line or "")
        return 0

    def bytes_of(self, count: int, most: int = CHUNK_BYTES) -> Iterator[bytes]:
        """Yield the `count` raw bytes behind a frame, at most `most`; raises as `ask`."""
        if count > most:
            raise unreadable(self.machine, f"{count:,} bytes where at most {most:,} are expected")
        deadline = time.monotonic() + ANSWER_LIMIT_S + count / LEAST_BYTES_PER_S
        blocks = self._frames.blocks(count)
        while count:
            with self._within(max(0.1, deadline - time.monotonic())):
                block = next(blocks, None)
            if block is None:
                raise self._broken()
            count -= len(block)
            yield block

    # the other side

    def become_server(self) -> None:
        """Let this Rankdeck's own program answer there; raises as `ask`."""
        if not self.machine.python and not self.hello.has_own_python:
            cause = f"{self.machine.name} has no environment for training yet."
            raise NotSetUpError(self.machine, cause)
        python = self.machine.python or self.hello.own_python
        folder = self.send_tree(own_code())
        env = {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
        env |= {"RANKDECK_HOME": self.machine.runs_dir} if self.machine.runs_dir else {}
        request = {"op": "become", "argv": [python, "-m", SERVER], "folder": folder, "env": env}
        try:
            self.runs_dir = self.ask(request, Ready, HELLO_LIMIT_S).runs_dir
        except UnreachableError:
            if self._ssh.returncode in (None, _NO_CONNECTION):
                raise
            printed = self._errors() or "nothing"
            cause = f"{python} there cannot run Rankdeck: {printed.splitlines()[-1].rstrip('.')}."
            raise NotSetUpError(
                self.machine, cause, "Name a Python with PyTorch and Rankdeck's packages, or set it up."
            ) from None

    def send_tree(self, tree: Tree, sent: Sent = lambda _: None) -> str:
        """Send a folder, by hash and only what is not there; return its path there. Raises as `ask`."""
        self.send_files(tree, self.missing(tree), sent)
        listed = [[file.path, file.sha256, file.size] for file in tree.files]
        return self.ask({"op": "tree", "name": tree.name, "files": listed}, Place).path

    def missing(self, tree: Tree) -> dict[str, int]:
        """Return the files that are not there: by hash, the number of bytes that have arrived already."""
        listed = [[file.sha256, file.size] for file in tree.files]
        answer = self.ask({"op": "need", "files": listed}, Missing)
        sizes = {file.sha256: file.size for file in tree.files}
        if any(offset > sizes.get(digest, -1) for digest, offset in answer.missing.items()):
            raise unreadable(self.machine, "it has more of a file than there is")
        return answer.missing

    def send_files(self, tree: Tree, missing: Mapping[str, int], sent: Sent = lambda _: None) -> None:
        """Send the `missing` files of a folder; what a cut has left there is continued."""
        left = dict(missing)
        for file in tree.files:
            if (offset := left.pop(file.sha256, None)) is not None:
                request = {"op": "put", "sha256": file.sha256, "size": file.size, "offset": offset}
                self._send({**request, "bytes": file.size - offset})
                for block in file.read(offset):
                    with self._within(ANSWER_LIMIT_S):
                        self._write(block)
                    sent(len(block))
                with self._within(ANSWER_LIMIT_S):
                    self._checked(self._receive())

    # the streams

    def _hello(self) -> Hello:
        read = 0
        while read < _NOISE_BYTES:  # a shell's own greeting may come first
            line = cast(IO[bytes], self._ssh.stdout).readline(_NOISE_BYTES)
            if not line:
                raise self._broken()
            read += len(line)
            if agent.READY.encode() in line:
                with contextlib.suppress(ParseError):  # it only has that word in it
                    value = parse_json(line)
                    if isinstance(value, dict):
                        return self._read(Hello, value)
        raise UnreachableError(
            f"{self.machine.name} printed {read:,} bytes before anything of ours.",
            "Keep its shell's start-up files quiet where there is no terminal.",
        )

    def _check_python(self) -> None:
        version = self.hello.python
        if version < OLDEST_PYTHON:
            text = ".".join(map(str, version))
            raise MachineError(
                f"{self.machine.name} has Python {text} ({self.hello.executable}).",
                "Install Python 3.11 or newer there, then add the machine again.",
                title="Python is too old there",
                code=3,
                option=f"rankdeck machines add {self.machine.name} … --starter python3.11",
            )

    def _send(self, request: Mapping[str, Any]) -> None:
        self._write(json.dumps(dict(request)).encode("ascii") + b"\n")

    def _write(self, data: bytes) -> None:
        stdin = cast(IO[bytes], self._ssh.stdin)
        try:
            stdin.write(data)
            stdin.flush()
        except (OSError, ValueError):
            raise self._broken() from None

    def _receive(self) -> dict[str, Any]:
        try:
            line = cast(IO[bytes], self._ssh.stdout).readline(LINE_BYTES)
        except (OSError, ValueError):
            line = b""
        if not line.endswith(b"\n"):
            raise self._broken() if len(line) < LINE_BYTES else unreadable(self.machine, "a line that is too long")
        try:
            frame = parse_json(line)
        except ParseError as error:
            raise unreadable(self.machine, error) from None
        if not isinstance(frame, dict):
            raise unreadable(self.machine, f"{type_text(frame)} instead of an object")
        return frame

    def _checked(self, frame: dict[str, Any]) -> dict[str, Any]:
        if "error" not in frame:
            return frame
        failure = self._read(Failure, frame["error"])
        cause = f"{self.machine.name}: {failure.cause}"  # which says "this machine" of itself
        if failure.title == NO_PYTORCH:
            raise NotSetUpError(self.machine, cause)
        step = failure.next_step or _LOOK_THERE
        refused = MachineError(cause, step, title=failure.title or None, code=failure.exit_code)
        refused.window_step = failure.window_step or refused.window_step
        raise refused

    def _read(self, form: type[T], frame: object) -> T:
        try:
            return read_record(form, frame)
        except RecordError as error:
            raise unreadable(self.machine, error) from None

    def _broken(self) -> RankdeckError:
        """Make the error for a stream that ended. The other side's last words have arrived when ssh has gone."""
        self._close_stdin()
        code: int | None
        try:
            code = self._ssh.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._ssh.kill()
            code = None
        self._reader.join(_END_LIMIT_S)
        code = None if self._timed_out else code
        return explain_ssh(self.machine, self._errors(), code, started=self.hello is not _NO_HELLO)

    def _errors(self) -> str:
        return self._printed.decode("utf-8", errors="replace").strip()

    def _close_stdin(self) -> None:
        if self._ssh.stdin is not None:
            with contextlib.suppress(OSError):
                self._ssh.stdin.close()

    def _read_errors(self) -> None:
        stderr = cast(IO[bytes], self._ssh.stderr)
        for line in stderr:
            self._printed = (self._printed + line)[-_KEPT_OUTPUT:]

    @contextmanager
    def _within(self, limit_s: float) -> Iterator[None]:
        """End the connection when the block takes longer, so that a wait in it fails."""

        def give_up() -> None:
            self._timed_out = True
            self._ssh.kill()

        timer = threading.Timer(limit_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


_NO_HELLO: Final = Hello((0, 0), "?", "?", "?", False)
_open: Final[set[Session]] = set()


def end_sessions() -> None:
    """End every connection of this process, so that a closing window does not wait for a silent machine."""
    for session in tuple(_open):
        session.end()


@contextmanager
def serving(machine: Machine, forward: tuple[int, int] | None = None) -> Iterator[Session]:
    """Open a session with Rankdeck's own program; raises as `Session` and `Session.become_server`."""
    with Session(machine, forward) as session:
        session.become_server()
        yield session


def look_at(machine: Machine) -> Devices:
    """Read a machine's devices and PyTorch version. Blocks; may be called from any thread. Raises as `serving`."""
    with serving(machine) as session:
        return session.ask({"op": "devices"}, Devices)
