"""A process that has imported what tests' processes need, and forks them. Linux only.

``python -m tests.helpers.fork_server MODULE ADDRESS OWNER``: imports MODULE, listens at the Unix socket ADDRESS and
ends with the process OWNER. A client sends `(function, arguments, sys.path)` and receives the child's process id, and
later its exit code. Python's own server (`multiprocessing.forkserver`) serves one process, with one set of imports.
This one serves all workers of pytest-xdist, and there are two: a run of fake ranks takes half the processor time when
its processes are forked from one without PyTorch.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import traceback
from multiprocessing.connection import Connection
from typing import NoReturn


def main(module: str, address: str, owner: int) -> None:
    """Serves until the owner ends; returns at once where another server listens already."""
    with socket.socket(socket.AF_UNIX) as listener, contextlib.suppress(ProcessLookupError):
        try:
            listener.bind(address)
        except OSError:
            return
        listener.listen(64)
        gc.disable()
        importlib.import_module(module)
        gc.freeze()
        gc.enable()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _serve(listener, os.pidfd_open(owner))


def _serve(listener: socket.socket, owner: int) -> None:
    # By the descriptor that is readable once the child has ended: its process id, and its client.
    children: dict[int, tuple[int, Connection]] = {}
    while True:
        ready, _, _ = select.select([listener, owner, *children], [], [])
        if owner in ready:
            return
        for ended in children.keys() & set(ready):
            pid, client = children.pop(ended)
            _, status = os.waitpid(pid, 0)
            os.close(ended)
            with contextlib.suppress(OSError), client:  # the client may have gone
                client.send(os.waitstatus_to_exitcode(status))
        if listener in ready:
            client = Connection(listener.accept()[0].detach())
            pid = os.fork()
            if pid == 0:
                for descriptor, (_, other) in children.items():
                    os.close(descriptor)
                    other.close()
                os.close(owner)
                listener.close()
                _run(client)
            children[os.pidfd_open(pid)] = pid, client
            with contextlib.suppress(OSError):
                client.send(pid)


def _run(client: Connection) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        function, arguments, sys.path[:] = client.recv()
        client.close()
        function(*arguments)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
