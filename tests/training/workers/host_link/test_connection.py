"""The line to the host over a real socket, and a rank's end when it breaks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import ConnectionRefusedByHostError
from core.protocol.messages import Finish, Hello, Stop
from core.protocol.rank_context import RankContext
from tests.helpers.host_stub import HostStub
from workers.host_link.connection import HostConnection
from workers.host_link.inbox import HostSilentError, Inbox
from workers.host_link.parent_watch import HOST_GONE_EXIT_CODE

pytestmark = pytest.mark.windows
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostStub]:
    stub = HostStub(tmp_path)
    yield stub
    stub.close()


def context(port: int, token: str, attempt: int = 0) -> RankContext:
    return RankContext(0, 1, "cpu", attempt=attempt, port=port, token=token)


def test_hello_and_messages(host: HostStub) -> None:
    connection = HostConnection(context(host.port, host.token, attempt=3))
    assert connection.run_id == "stub"
    inbox = Inbox(connection.inbox)
    host.tell_all(Stop())
    host.tell_all(Finish())
    _until(inbox)
    assert inbox.stop_asked and inbox.finish
    connection.close()


def _until(inbox: Inbox) -> None:
    deadline = time.monotonic() + 10
    while not inbox.finish and time.monotonic() < deadline:
        inbox.wait(1.0)


def test_nobody_there_is_said_in_words() -> None:
    with pytest.raises(ConnectionRefusedByHostError) as caught:
        HostConnection(context(1, "x"))
    assert "port 1" in caught.value.cause and caught.value.next_step


def test_a_host_that_does_not_answer_is_not_waited_for_for_ever(host: HostStub) -> None:
    connection = HostConnection(context(host.port, host.token))
    with pytest.raises(HostSilentError):
        Inbox(connection.inbox).wait_for(Hello, 0.05)
    connection.close()


def test_a_rank_that_hangs_ends_when_the_host_is_gone(host: HostStub) -> None:
    """The main thread sleeps as in a collective that never finishes; the reading thread ends the process."""
    code = (
        "import sys, time; from workers.host_link.connection import HostConnection;"
        "from core.protocol.rank_context import RankContext;"
        "HostConnection(RankContext(0, 1, 'cpu', port=int(sys.argv[1]), token=sys.argv[2])); print('in', flush=True);"
        "time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(host.port), host.token],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    host.drop_ranks()
    _, errors = process.communicate(timeout=5)
    assert process.returncode == HOST_GONE_EXIT_CODE
    assert "host is gone" in errors
