"""The line to the host over a real socket, and a rank's end when it breaks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from core.errors import ConnectionRefusedByHostError
from core.protocol.messages import Finish, Hello, Stop
from core.protocol.rank_context import RankContext
from core.protocol.server import Connection, Listener
from workers.host_link.connection import HOST_GONE_EXIT_CODE, HostConnection
from workers.host_link.inbox import HostSilentError, Inbox

ROOT: Final = Path(__file__).resolve().parents[4]
ATTEMPT: Final = 3
TOKEN: Final = "rank token"
T = TypeVar("T")


class Host:
    """A run host's listener, on an event loop in a thread, that tells each rank to stop and to finish."""

    def __init__(self) -> None:
        self.listener = Listener("a run", "client token", self)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.port = self.run(self.listener.start())
        self.listener.expect_ranks(attempt=ATTEMPT, world_size=1, token=TOKEN)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def close(self) -> None:
        self.run(self.listener.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def connected(self, connection: Connection) -> None:
        connection.send(Stop())
        connection.send(Finish())

    def message_received(self, *_: object) -> None: ...

    def lines_received(self, *_: object) -> None: ...

    def closed(self, *_: object) -> None: ...


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.close()


def context(port: int, token: str = TOKEN) -> RankContext:
    return RankContext(0, 1, "cpu", attempt=ATTEMPT, port=port, token=token)


def test_hello_and_messages(host: Host) -> None:
    connection = HostConnection(context(host.port))
    assert connection.run_id == "a run"
    inbox = Inbox(connection.inbox)
    _until(inbox)
    assert inbox.stop_asked and inbox.finish
    connection.close()


def test_a_wrong_token_is_refused(host: Host) -> None:
    with pytest.raises(ConnectionRefusedByHostError, match="The token is wrong"):
        HostConnection(context(host.port, "another token"))


def _until(inbox: Inbox) -> None:
    deadline = time.monotonic() + 10
    while not inbox.finish and time.monotonic() < deadline:
        inbox.wait(1.0)


def test_a_host_that_does_not_listen_is_named() -> None:
    with pytest.raises(ConnectionRefusedByHostError) as caught:
        HostConnection(context(1))
    assert "port 1" in caught.value.cause and caught.value.next_step


def test_a_host_that_does_not_answer_is_not_waited_for_for_ever(host: Host) -> None:
    connection = HostConnection(context(host.port))
    with pytest.raises(HostSilentError):
        Inbox(connection.inbox).wait_for(Hello, 0.05)
    connection.close()


def test_a_rank_that_hangs_ends_when_the_host_is_gone(host: Host) -> None:
    """The main thread sleeps as in a collective that never finishes; the reading thread ends the process."""
    code = (
        "import sys, time; from workers.host_link.connection import HostConnection;"
        "from core.protocol.rank_context import RankContext;"
        "HostConnection(RankContext(0, 1, 'cpu', attempt=3, port=int(sys.argv[1]), token=sys.argv[2]));"
        "print('in', flush=True);"
        "time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(host.port), TOKEN],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    host.run(host.listener.close())
    _, errors = process.communicate(timeout=100)
    assert process.returncode == HOST_GONE_EXIT_CODE
    assert "host is gone" in errors
