"""A rank's connection to its run host: one socket, a thread that reads it, and the process's end when it closes.

The socket is on loopback, or goes to the machine with the host, which gets a proof of the token instead of it. A
request for stacks is answered here, since the training thread may be what hangs. A rank never outlives its host: on
Linux the kernel's parent-death signal ends it, and everywhere a closed socket does within a few seconds, also while the
main thread is stuck in a collective that will never finish.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import Final

from core.errors import ConnectionRefusedByHostError, ProtocolError, RankdeckError
from core.protocol.challenge import rank_proof
from core.protocol.codec import MAX_LINE_BYTES, decode, encode
from core.protocol.messages import RANK_PROTOCOL, Challenge, Hello, Message, Refused, StacksPlease, Welcome
from core.protocol.rank_context import LOOPBACK, RankContext
from workers.host_link.stacks import own_stacks

HOST_GONE_EXIT_CODE: Final = 70
_PR_SET_PDEATHSIG: Final = 1
# For the host to answer: a thousand ranks may come at once, on a machine that they keep busy.
_HOST_LIMIT_S: Final = 30.0
_GRACE_S: Final = 1.5


def tie_to_host(host_pid: int) -> None:
    """Ask the kernel to kill this process when its parent ends, on Linux; raise if that has ended already.

    Elsewhere the host's Job Object and the socket do this work. `host_pid` is 0 where there is none to check against.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if host_pid and os.getppid() != host_pid:
        raise RankdeckError(
            "The process that started this rank has ended.",
            "Resume the run from its last checkpoint.",
            title="The run's host is gone",
        )


class HostConnection:
    """An accepted connection to the run host; raises `ConnectionRefusedByHostError`.

    `send_bytes` may be called from any thread; a thread puts the host's messages into `inbox`.
    """

    def __init__(self, context: RankContext) -> None:
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._closing = False
        self._sending = threading.Lock()
        self._socket = _connect(context)
        self._lines = self._socket.makefile("rb", buffering=1 << 16)
        try:
            self.run_id = self._shake_hands(context)
        except BaseException:
            self._lines.close()
            self._socket.close()
            raise
        self._socket.settimeout(None)
        self._reader = threading.Thread(target=self._read, name="host-reader", daemon=True)
        self._reader.start()

    def send_bytes(self, data: bytes) -> None:
        """Write whole lines; block while the host does not read. Raises `OSError` where the connection is closed."""
        with self._sending:
            self._socket.sendall(data)

    def expect_close(self) -> None:
        """Let the host close the connection from now on without this process ending for it."""
        self._closing = True

    def close(self) -> None:
        self._closing = True
        with suppress(OSError):  # the host's end may be closed before ours
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(timeout=5.0)
        self._lines.close()
        self._socket.close()

    def _shake_hands(self, context: RankContext) -> str:
        try:
            token = context.token if context.host_address == LOOPBACK else self._proof(context)
            hello = Hello("rank", token, RANK_PROTOCOL, context.rank, context.attempt, os.getpid())
            self._socket.sendall(encode(hello))
            answer = decode(self._lines.readline(MAX_LINE_BYTES + 1))
        except (OSError, ProtocolError) as error:
            raise _refused(f"The run's host did not accept this rank ({error}).") from None
        if isinstance(answer, Welcome):
            return answer.run_id
        reason = answer.reason if isinstance(answer, Refused) else "it is not a run host"
        raise _refused(f"The run's host did not accept this rank: {reason}.")

    def _proof(self, context: RankContext) -> str:
        """A proof of the token, which does not travel between machines."""
        challenge = decode(self._lines.readline(MAX_LINE_BYTES + 1))
        if not isinstance(challenge, Challenge):
            raise ProtocolError("it sent no challenge")
        return rank_proof(context.token, challenge.nonce, context.rank, context.attempt)

    def _read(self) -> None:
        cause = "it closed the connection"
        try:
            while line := self._lines.readline(MAX_LINE_BYTES + 1):
                message = decode(line)
                if isinstance(message, StacksPlease):
                    self.send_bytes(encode(own_stacks()))
                elif isinstance(message, Message):
                    self.inbox.put(message)
        except (OSError, ValueError) as error:  # ValueError: the file was closed under us by close()
            cause = str(error)
        except ProtocolError as error:
            cause = error.cause
        if not self._closing:
            self._end_process(cause)

    def _end_process(self, cause: str) -> None:
        """Give the main thread a moment to end by itself, then end the process in any state."""
        threading.Event().wait(_GRACE_S)
        if self._closing:
            return
        sys.stderr.write(f"rankdeck: the run's host is gone ({cause}); this rank exits.\n")
        sys.stderr.flush()
        os._exit(HOST_GONE_EXIT_CODE)


def _connect(context: RankContext) -> socket.socket:
    try:
        connection = socket.create_connection((context.host_address, context.port), timeout=_HOST_LIMIT_S)
    except OSError as error:
        where = "this machine" if context.host_address == LOOPBACK else context.host_address
        raise _refused(f"Nothing answers on port {context.port} of {where} ({error}).") from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _refused(cause: str) -> ConnectionRefusedByHostError:
    return ConnectionRefusedByHostError(cause, "Start or resume the run again; a rank cannot be started manually.")
