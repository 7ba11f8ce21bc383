"""The other end of a rank's line, small enough to see through: a real socket, one thread a rank, no ledger file."""

from __future__ import annotations

import json
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.protocol.codec import decode, encode
from core.protocol.messages import (
    Bye,
    Claim,
    CommitBegin,
    CommitFailed,
    CommitPlease,
    CommitStaged,
    Committed,
    CommitTo,
    DataReady,
    Finish,
    Grant,
    Hello,
    Merge,
    MergeDone,
    Message,
    RankDone,
    RankFailed,
    Stop,
    Welcome,
)
from workers.training.batches import ChunkPlan


class HostStub:
    """Accepts ranks and answers them; checkpoints get a manifest with what the ranks staged.

    Args:
        run_dir: Where checkpoints go.
        plan: How the dataset is cut; None takes the samples from `DataReady`.
        epochs: Passes over the data.
        world_size: Ranks that will come.
        groups: 1 when they train in step, else as many as ranks.
        stop_at: Sends `Stop` when a step line of this step or later comes.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        world_size: int = 1,
        groups: int = 1,
        epochs: int = 1,
        samples_per_block: int = 64,
        chunk_size: int = 16,
        seed: int = 1234,
        stop_at: int | None = None,
        merge: bool = False,
    ) -> None:
        self.run_dir, self.world_size, self.groups, self.epochs = run_dir, world_size, groups, epochs
        self.cut = (samples_per_block, chunk_size, seed)
        self.stop_at, self.merge = stop_at, merge
        self.token = secrets.token_hex(16)
        self.lines: list[dict[str, Any]] = []
        self.messages: list[tuple[int, Message]] = []
        self.failures: list[RankFailed] = []
        self.changed = threading.Condition()
        self.start_from: dict[int, Any] = {}
        self._chunks: list[list[tuple[int, int, int, int, int]]] = []
        self._plan: ChunkPlan | None = None
        self._open: dict[int, dict[int, CommitStaged]] = {}
        self._by_step: dict[int, int] = {}
        self._next_checkpoint = 1
        self._ranks: dict[int, socket.socket] = {}
        self._done: set[int] = set()
        self._merging = False
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._server.settimeout(0.1)
        self._closing = False
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing:
            try:
                peer, _ = self._server.accept()
            except TimeoutError:
                continue
            peer.settimeout(None)
            self._start(self._talk, peer)

    def _talk(self, peer: socket.socket) -> None:
        with peer, peer.makefile("rb") as lines:
            rank = -1
            try:
                for line in lines:
                    message = decode(line)
                    with self.changed:
                        if isinstance(message, Hello):
                            rank = message.rank
                            self._ranks[rank] = peer
                            self._send(rank, Welcome(run_id="stub"))
                        elif isinstance(message, dict):
                            self._line(message)
                        else:
                            self.messages.append((rank, message))
                            self._answer(rank, message)
                        self.changed.notify_all()
            except OSError:
                return

    def _line(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        if line["event"] == "step" and self.stop_at is not None and line["step"] >= self.stop_at:
            self.stop_at = None
            self.tell_all(Stop())

    def _answer(self, rank: int, message: Message) -> None:
        match message:
            case DataReady():
                self._cut_data(message.samples)
                for other in range(self.world_size):
                    self._send_when_there(other, message)
            case Claim():
                self._send(rank, self._grant(0 if self.groups == 1 else rank, message.sequence))
            case CommitBegin():
                self._begin(rank, message)
            case CommitStaged():
                self._staged(rank, message)
            case CommitFailed():
                self._open.pop(message.checkpoint, None)
            case RankDone():
                self._done.add(rank)
                self._finish_if_done()
            case MergeDone():
                self.tell_all(Finish())
            case RankFailed():
                self.failures.append(message)
            case Bye():
                pass

    def _cut_data(self, samples: int) -> None:
        plan = self._plan = ChunkPlan(samples, *self.cut)
        sizes = list(plan.sizes())
        for group in range(self.groups):
            chunks = []
            for epoch in range(self.epochs):
                order = list(range(len(sizes)))
                random.Random(f"{plan.seed}/{epoch}").shuffle(order)
                for i in order:
                    if self.groups == 1 or (i + epoch) % self.groups == group:
                        block, chunk = divmod(i, plan.chunks_per_block)
                        start = block * plan.samples_per_block + chunk * plan.chunk_size
                        chunks.append((epoch, block, chunk, start, sizes[i]))
            self._chunks.append(chunks)

    def _grant(self, group: int, sequence: int) -> Grant:
        done, offset = self.start_from.get(group, (0, 0))
        index = done + sequence
        if index >= len(self._chunks[group]):
            return Grant(sequence, exhausted=True)
        epoch, block, chunk, start, count = self._chunks[group][index]
        return Grant(sequence, epoch, block, chunk, start, count, offset if sequence == 0 else 0)

    def _begin(self, rank: int, message: CommitBegin) -> None:
        if self.groups == 1:
            known = self._by_step.get(message.step)
        else:
            known = next((n for n, parts in self._open.items() if rank not in parts), None)
        if known is None and self._open:
            self._send(rank, CommitTo(-1))
            return
        if known is None:
            known, self._next_checkpoint = self._next_checkpoint, self._next_checkpoint + 1
            self._open[known] = {}
            self._by_step[message.step] = known
            if self.groups > 1:
                self.tell_all(CommitPlease("another replica group"), but=rank)
        folder = self.run_dir / "checkpoints" / str(known)
        folder.mkdir(parents=True, exist_ok=True)
        self._send(rank, CommitTo(known, str(folder)))

    def _staged(self, rank: int, message: CommitStaged) -> None:
        parts = self._open[message.checkpoint]
        parts[rank] = message
        if len(parts) < self.world_size:
            return
        del self._open[message.checkpoint]
        files = [{"name": f.name, "size": f.size, "sha256": f.sha256} for part in parts.values() for f in part.files]
        manifest = self.run_dir / "checkpoints" / str(message.checkpoint) / "manifest.json"
        manifest.write_text(json.dumps({"files": files}), encoding="utf-8")
        self.tell_all(Committed(message.checkpoint))
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        if len(self._done) < self.world_size or self._open:
            return
        if self.merge and not self._merging:
            self._merging = True
            number = self._next_checkpoint - 1
            self._send(0, Merge(1, number, str(self.run_dir / "checkpoints" / str(number))))
        elif not self._merging:
            self.tell_all(Finish())

    def tell_all(self, message: Message, but: int = -1) -> None:
        """Sends a message to every rank, but one."""
        for rank in list(self._ranks):
            if rank != but:
                self._send(rank, message)

    def _send_when_there(self, rank: int, message: Message) -> None:
        deadline = time.monotonic() + 30
        while rank not in self._ranks and time.monotonic() < deadline:
            self.changed.wait(0.1)
        self._send(rank, message)

    def _send(self, rank: int, message: Message) -> None:
        self._ranks[rank].sendall(encode(message))

    def wait(self, condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
        """Until the condition holds; looked at whenever a rank says something."""
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), self.failures or self.messages[-5:]

    def events(self, name: str, rank: int | None = None) -> list[dict[str, Any]]:
        """Metrics lines of one kind."""
        return [line for line in self.lines if line["event"] == name and rank in (None, line["rank"])]

    def drop_ranks(self) -> None:
        """Closes every connection, as a host that dies does."""
        for peer in self._ranks.values():
            peer.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends all threads."""
        self._closing = True
        for peer in self._ranks.values():
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in self._threads:
            thread.join(5.0)
        self._server.close()
