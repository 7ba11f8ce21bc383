"""Program: the rendezvous store of a script's ranks, on 127.0.0.1 alone. It needs torch and the standard library only.

It runs in the script's own interpreter (Python 3.8 and newer), so that its TCPStore is the one that the script's torch
expects. Linux only. Arguments: the number of a listening socket, the number of ranks. It ends with its standard input.

Between that socket and the TCPStore bytes are copied as they are: a rank that closed all its connections and comes back
(`init_process_group` after `destroy_process_group`) is led to a new store, as rank 0 would make one, because the keys
that are left in the old one break a second group.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

_ESTABLISHED = "01"
_CHUNK_BYTES = 1 << 16


def main() -> None:
    """Serves until standard input is closed."""
    gc.disable()  # what torch imports stays; looking through it again and again is a seventh of it
    listener = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    sys.stdin.buffer.read()
    os._exit(0)


def _serve(listener: socket.socket) -> None:
    try:
        stores = Stores(listener.getsockname()[1], world_size=int(sys.argv[2]))
        while True:
            client, (_, port) = listener.accept()
            server = stores.connect(port)
            for pair in ((client, server), (server, client)):
                threading.Thread(target=_copy, args=pair, daemon=True).start()
    except BaseException:  # without this thread the process is of no use
        import traceback

        traceback.print_exc()
        os._exit(1)


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while True:
            data = source.recv(_CHUNK_BYTES)
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        target.close()


class Stores:
    """The stores, one for each time that the ranks, which connect to `port`, make their process group."""

    def __init__(self, port: int, world_size: int) -> None:
        from torch.distributed import TCPStore  # type: ignore[attr-defined]  # here, where a failure is told

        self._port = port
        self._world = world_size
        self._make = TCPStore
        self._stores: list[tuple[Any, int]] = []
        self._round: dict[str, int] = {}
        self._peers: dict[str, list[int]] = {}
        self._store(0)

    def connect(self, peer: int) -> socket.socket:
        """A connection to the store that the process at this port is to have."""
        table = _connections()
        rank = _read_rank(table.get((peer, self._port), ("", ""))[1])
        before = self._peers.get(rank)
        living = [p for p in before or [] if p != peer and table.get((self._port, p), ("", ""))[0] == _ESTABLISHED]
        now = self._round.setdefault(rank, 0)
        met = sum(number >= now for number in self._round.values()) >= self._world
        if before and not living and met:  # a rank that tries once more to reach the others stays with them
            self._round[rank] += 1
        self._peers[rank] = [*living, peer]
        found = socket.create_connection(("127.0.0.1", self._store(self._round[rank])))
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found

    def _store(self, number: int) -> int:
        while len(self._stores) <= number:
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen(128)
            port = listener.getsockname()[1]
            store = self._make(
                "127.0.0.1",
                port,
                None,
                True,
                timedelta(seconds=300),
                wait_for_workers=False,
                master_listen_fd=listener.detach(),  # it closes it
            )
            self._stores.append((store, port))
        return self._stores[number][1]


def _connections() -> dict[tuple[int, int], tuple[str, str]]:
    """This machine's TCP connections: local and remote port → state and inode (proc(5), /proc/net/tcp)."""
    found = {}
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            local, remote = (int(fields[i].rpartition(":")[2], 16) for i in (1, 2))
            found[local, remote] = (fields[3], fields[9])
    return found


def _read_rank(inode: str) -> str:
    """RANK in the environment of the process that holds a socket; empty when it is not found."""
    wanted = "socket:[" + inode + "]"
    for process in Path("/proc").glob("[1-9]*"):
        try:
            if any(os.readlink(fd) == wanted for fd in process.joinpath("fd").iterdir()):  # noqa: PTH115, Python 3.8
                variables = process.joinpath("environ").read_bytes().split(b"\0")
                return next((v[5:].decode() for v in variables if v.startswith(b"RANK=")), "")
        except OSError:
            continue  # another person's, or ended meanwhile
    return ""


if __name__ == "__main__":
    del sys.path[0]  # this folder's modules are none of torch's business
    main()
