"""A rank that speaks the protocol, trains nothing, needs no torch, and misbehaves on request (`fake_behaviour`).

Its "weights" are a hash over the samples it was given, so a run that is resumed must end in the same bytes as one that
was not. Ranks that train in step are tied together by an all-reduce of their own: it hangs when a rank hangs, and
breaks in all the others when one dies.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.config.distributed import DistributedConfig
from core.errors import ConnectionRefusedByHostError
from core.protocol.codec import encode
from core.protocol.messages import (
    Bye,
    ChunkDone,
    Claim,
    CommitBegin,
    CommitFailed,
    CommitStaged,
    CommitTo,
    DataReady,
    Grant,
    Merge,
    MergeDone,
    Message,
    Phase,
    Position,
    RankDone,
    StagedFile,
)
from core.protocol.rank_context import RankContext
from tests.helpers.fake_behaviour import FakeFailure, read_behaviour
from workers.host_link.connection import HostConnection
from workers.host_link.inbox import Inbox

DATA_LIMIT_S = 60.0


class ReplicaGroup:
    """This rank's place in the data and its weights.

    Args:
        claim: Asks the host for the chunk of this number.
    """

    def __init__(self, claim: Callable[[int], Grant]) -> None:
        self._claim = claim
        self._sequence = 0
        self._grant: Grant | None = None
        self._done_in_grant = 0
        self.samples_seen = 0
        self.chunks_done = 0
        self.completed: list[ChunkDone] = []
        self._in_checkpoint: dict[int, int] = {}
        self.weights = hashlib.sha256(b"fake").hexdigest()

    def train(self, step: int, samples: int) -> Grant | None:
        """Takes the next samples; None when there are none left."""
        last = None
        while samples > 0:
            grant = self._current()
            if grant is None:
                return last
            last = grant
            taken = min(samples, grant.count - self._done_in_grant)
            text = f"{self.weights}/{grant.epoch}/{grant.start + self._done_in_grant}/{taken}"
            self.weights = hashlib.sha256(text.encode()).hexdigest()
            self._done_in_grant += taken
            self.samples_seen += taken
            samples -= taken
            if self._done_in_grant == grant.count:
                self.completed.append(ChunkDone(grant.epoch, grant.block_id, grant.chunk_id, step, grant.count))
                self.chunks_done += 1
                self._grant = None
        return last

    def position(self, step: int, checkpoint: int) -> Position:
        self._in_checkpoint[checkpoint] = len(self.completed)
        grant, done = self._grant, self._done_in_grant
        partial = [] if grant is None or not done else [[grant.epoch, grant.block_id, grant.chunk_id, done]]
        return Position(step, self.samples_seen, list(self.completed), partial)

    def committed(self, checkpoint: int) -> None:
        held = self._in_checkpoint.pop(checkpoint, 0)
        del self.completed[:held]
        self._in_checkpoint = {n: max(0, count - held) for n, count in self._in_checkpoint.items()}

    def _current(self) -> Grant | None:
        if self._grant is None:
            grant = self._claim(self._sequence)
            self._sequence += 1
            if grant.exhausted:
                return None
            self._grant, self._done_in_grant = grant, grant.offset
        return self._grant


class Hub:
    """An all-reduce of one small number over loopback, or between machines: rank 0 in the middle."""

    def __init__(self, run_dir: Path, attempt: str, rank: int, world_size: int) -> None:
        address = DistributedConfig.from_env(os.environ).master_addr
        self._rank = rank
        self._peers: list[socket.socket] = []
        meeting = run_dir / f".fake-hub-{attempt}"
        if world_size == 1:
            return
        if rank == 0:
            with socket.create_server((address, 0)) as server:
                draft = meeting.with_suffix(".draft")
                draft.write_text(str(server.getsockname()[1]), encoding="utf-8")
                draft.replace(meeting)
                self._peers = [server.accept()[0] for _ in range(world_size - 1)]
            return
        while not meeting.exists():
            time.sleep(0.01)
        self._peers = [socket.create_connection((address, int(meeting.read_text(encoding="utf-8"))))]

    def highest(self, value: int) -> int:
        """The highest value that any rank has given; every rank must call."""
        try:
            if self._rank == 0:
                value = max([value, *(self._read(peer) for peer in self._peers)])
                for peer in self._peers:
                    peer.sendall(bytes([value]))
            elif self._peers:
                self._peers[0].sendall(bytes([value]))
                value = self._read(self._peers[0])
        except OSError as error:
            raise FakeFailure("A collective failed", f"[gloo/transport] Connection closed by peer ({error})") from None
        return value

    def close(self) -> None:
        for peer in self._peers:
            peer.close()

    @staticmethod
    def _read(peer: socket.socket) -> int:
        data = peer.recv(1)
        if not data:
            raise OSError("end of file")
        return data[0]


class FakeRank:
    """One fake rank, from its connection to its last message."""

    def __init__(self, context: RankContext) -> None:
        self.context = context
        self.run_dir, self.rank, self.world_size = context.run_dir, context.rank, context.world_size
        self.independent = context.mode == "independent"
        self.does = read_behaviour(context.run_dir, context.rank)
        self.does.prepare_process()
        self.misbehave("start")
        self.connection = HostConnection(context)
        if self.does.ignore_eof:
            self.connection.expect_close()
        self.inbox = Inbox(self.connection.inbox)
        self.step = 0
        self.failing_commits = self.does.failing_commits
        self.group = ReplicaGroup(self._claim)
        self._sending = threading.Lock()
        self._savers: list[threading.Thread] = []
        self._best = float("inf")

    def run(self) -> None:
        self.phase("importing torch")
        if self.rank == 0:
            self.phase("preparing data")
            self.misbehave("data")
            (self.run_dir / "data").mkdir(exist_ok=True)
            self.send(DataReady(self.does.samples, 10, {"fake": True}))
        data = self.inbox.wait_for_data(DATA_LIMIT_S)
        hub = Hub(self.run_dir, str(self.context.attempt), self.rank, 1 if self.independent else self.world_size)
        self._restore(data)
        self.misbehave("ready")
        self.phase("ready")
        finished = self._train(hub)
        self._commit("finished" if finished else "stopped", surely=True)
        self.misbehave("finish")
        self.send(RankDone(self.step, finished))
        self._serve(lambda: self.inbox.finish)
        hub.close()
        self.connection.expect_close()
        self.send(Bye(self.step))
        self.connection.close()

    def misbehave(self, where: str | int) -> None:
        self.does.reach(where, self.context)

    # talking

    def send(self, message: Message) -> None:
        self.send_raw(encode(message))

    def send_raw(self, data: bytes) -> None:
        with self._sending:
            self.connection.send_bytes(data)

    def phase(self, name: str) -> None:
        self.send(Phase(name))

    def line(self, event: str, **fields: Any) -> bytes:
        origin = {"rank": self.rank, "attempt": self.context.attempt}
        return json.dumps({"ts": time.time(), "event": event, **origin, **fields}).encode() + b"\n"

    def _claim(self, sequence: int) -> Grant:
        self.send(Claim(sequence))
        return self.inbox.wait_for(Grant)

    # working

    def _restore(self, data: DataReady) -> None:
        folder = self.context.checkpoint
        if folder is None:
            return
        start = data.start
        assert start is not None
        own = folder / f"rank{start.copy if start.copy.isdigit() else self.rank}.json"
        state = json.loads((own if own.exists() else folder / "rank0.json").read_text(encoding="utf-8"))
        self.step, self.group.samples_seen, self.group.weights = state["step"], state["samples_seen"], state["weights"]
        self.group.chunks_done = state["chunks_done"]
        self.step = start.step
        if start.samples_seen is not None:
            self.group.samples_seen = start.samples_seen

    def _train(self, hub: Hub) -> bool:
        while self.step < self.does.steps:
            grant = self.group.train(self.step + 1, self.does.batch)
            if grant is None:
                return True
            hub.highest(0)  # as gradients are: no rank has made a step before all have
            self.step += 1
            time.sleep(self.does.step_s)
            self._report(grant)
            self.misbehave(self.step)
            self.inbox.poll()
            wish = hub.highest(2 if self._may_stop() else 1 if self.inbox.commit_asked else 0)
            if wish == 2:
                return False
            if self._note_best():
                self._commit("best", surely=True)
            elif wish == 1 or (self.does.commit_every and self.step % self.does.commit_every == 0):
                self._commit("asked" if wish else "steps", surely=self.does.commits_all)
        return True

    @property
    def _evaluates(self) -> bool:
        return bool(self.does.eval_every) and self.step % self.does.eval_every == 0

    def _val_loss(self, step: int | None = None) -> float:
        number = (self.step if step is None else step) // max(self.does.eval_every, 1)
        losses = self.does.val_losses or [self.does.val_loss]
        return losses[min(max(number, 1), len(losses)) - 1]

    def _note_best(self) -> bool:
        if not self._evaluates or not self.context.best_metric or self._val_loss() >= self._best:
            return False
        self._best = self._val_loss()
        return True

    def _may_stop(self) -> bool:
        return self.inbox.stop_asked and self.does.hang_at != "stop"

    def _report(self, grant: Grant) -> None:
        loss = 4.0 / (1.0 + self.step / 10)
        times: dict[str, float] = {}
        if self.does.wait_s is not None:
            rate = self.does.batch / self.world_size / self.does.step_s
            times = {"step_time_s": self.does.step_s, "sync_wait_s": self.does.wait_s, "data_wait_s": 0.0}
            times["samples_per_s"] = rate
        lines = [
            self.line(
                "step", step=self.step, loss=loss, lr=0.001, tokens_per_s=1000.0, epoch=grant.epoch,
                block_id=grant.block_id, chunk_id=grant.chunk_id, **times,
            )
        ]  # fmt: skip
        lines += [self.line("note", step=self.step, number=number) for number in range(self.does.flood)]
        if self._evaluates:
            loss = self._val_loss()
            lines.append(self.line("eval", step=self.step, val_loss=loss, val_score=loss))
        self.send_raw(b"".join(lines))
        if self.step == 1:
            self.phase("first step")
            for text in self.does.raw:
                self.send_raw(text.encode("utf-8", "surrogateescape") + b"\n")

    def _serve(self, until: Callable[[], bool]) -> None:
        while not until():
            self.inbox.wait(0.2)
            if self.inbox.commit_asked:
                self._commit("asked", surely=True)
            while self.inbox.orders:
                self._merge(self.inbox.orders.popleft())

    def _merge(self, order: Merge) -> None:
        self.misbehave("merge")
        folder = Path(order.folder)
        losses = {f"rank {r}": read_behaviour(self.run_dir, r).val_loss for r in range(self.world_size)}
        best = min(range(self.world_size), key=lambda r: losses[f"rank {r}"])
        weights = (folder / f"weights_rank{best}.safetensors").read_text(encoding="utf-8")
        (folder / "merged.safetensors").write_text(weights, encoding="utf-8")
        self.send(MergeDone(order.checkpoint, "merged.safetensors", f"rank {best}", losses))

    # committing

    def _commit(self, reason: str, *, surely: bool = False) -> None:
        while True:
            self.send(CommitBegin(self.step, reason))
            answer = self.inbox.wait_for(CommitTo)
            self.inbox.commit_asked = False
            if answer.checkpoint >= 0:
                break
            if not surely:
                return
            time.sleep(0.02)
        for saver in self._savers:
            saver.join()
        part = self._part()
        while self.inbox.committed:
            self.group.committed(self.inbox.committed.pop(0))
        position = self.group.position(self.step, answer.checkpoint)
        saver = threading.Thread(target=self._save, args=(Path(answer.folder), answer.checkpoint, part, position))
        self._savers = [saver]
        saver.start()
        if surely:
            saver.join()

    def _part(self) -> dict[str, str]:
        state = {
            "step": self.step, "samples_seen": self.group.samples_seen, "weights": self.group.weights,
            "chunks_done": self.group.chunks_done,
        }  # fmt: skip
        files = {f"rank{self.rank}.json": json.dumps(state)}
        if self.independent:
            files[f"weights_rank{self.rank}.safetensors"] = self.group.weights
        elif self.rank == 0:
            files["weights.safetensors"] = self.group.weights
        if self.does.ballast:
            files[f"ballast{self.rank}.bin"] = "x" * self.does.ballast
        return files

    def _save(self, folder: Path, checkpoint: int, part: dict[str, str], position: Position) -> None:
        self.misbehave("staging")
        time.sleep(self.does.commit_s)
        if self.failing_commits > 0:
            self.failing_commits -= 1
            self.send(CommitFailed(checkpoint, "The disk is full (a fake one)."))
            return
        staged = []
        for name, text in part.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
            data = text.encode()
            staged.append(StagedFile(name, len(data), hashlib.sha256(data).hexdigest()))
        evaluated = self.does.eval_every and (not self.does.val_losses or position.step % self.does.eval_every == 0)
        self.send(CommitStaged(checkpoint, position, staged, self._val_loss(position.step) if evaluated else None))


def main() -> int:
    """Runs one fake rank; returns its exit code."""
    try:
        rank = FakeRank(RankContext.from_env(os.environ))
    except ConnectionRefusedByHostError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    try:
        rank.run()
    except FakeFailure as failure:
        rank.connection.expect_close()
        rank.send(failure.report)
        return 2 if failure.report.usage else 1
    return 0
