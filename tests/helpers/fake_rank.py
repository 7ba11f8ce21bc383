"""A rank that speaks the protocol, trains nothing, needs no torch, and misbehaves on request.

It does what `fake.json` in its run's folder says (`Behaviour`): a table of behaviours by rank (``"*"`` is every
rank). Its "weights" are a hash over the samples it was given, so a run that is resumed must end in the same bytes as
one that was not. Ranks that train in step are tied together by a hub that works like an all-reduce: it hangs when a
rank hangs, and breaks in all the others when one dies.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from core.protocol.codec import decode, encode
from core.protocol.messages import (
    RANK_PROTOCOL,
    Bye,
    ChunkDone,
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
    Merged,
    MergeDone,
    MergeReady,
    Message,
    Phase,
    Position,
    RankDone,
    RankFailed,
    StagedFile,
    Stop,
    Welcome,
)
from core.protocol.rank_context import RankContext

BEHAVIOUR_FILE: Final = "fake.json"
HOST_GONE: Final = 70
M = TypeVar("M", bound=Message)


@dataclass
class Behaviour:
    """What a fake rank does.

    Attributes:
        steps: Steps of the whole run.
        step_s: How long one takes.
        samples: Training samples in the dataset.
        batch: Samples of one step.
        fail_at: Where it fails: "start" (before it connects), "data", "ready", "staging", "finish", or a step number.
        fail_how: "kill" (SIGKILL), "exit:N", "raise" (says `RankFailed`), "usage" (the person's fault), "quiet"
            (exit code 0 without a word).
        fail_attempts: Only in these attempts; empty means in every one.
        hang_at: Where it stops answering: as `fail_at`, or "stop" (ignores a stop).
        commit_every: Steps between commits; 0 commits at the end only.
        commit_s: How long a part takes to write.
        failing_commits: So many commits fail first.
        eval_every: Steps between `eval` lines; 0 has none.
        val_loss: What it measures.
        merge_every: Chunks between merge rounds, in independent mode.
        merge_s: How long a merge takes.
        flood: Further metrics lines with each step.
        raw: Lines sent as they are, once, after the first step.
        bad_token: Says hello with another token.
        ignore_eof: Goes on when the host is gone.
        ignore_sigterm: Has to be killed.
        grandchild: Starts a process of its own that sleeps.
        daemon: Python code that it starts in a session of its own, by a process that ends at once.
    """

    steps: int = 20
    step_s: float = 0.002
    samples: int = 100_000
    batch: int = 4
    fail_at: str | int | None = None
    fail_how: str = "kill"
    fail_attempts: list[int] = field(default_factory=list)
    hang_at: str | int | None = None
    commit_every: int = 0
    commit_s: float = 0.0
    failing_commits: int = 0
    eval_every: int = 0
    val_loss: float = 2.0
    merge_every: int = 0
    merge_s: float = 0.0
    flood: int = 0
    raw: list[str] = field(default_factory=list)
    bad_token: bool = False
    ignore_eof: bool = False
    ignore_sigterm: bool = False
    grandchild: bool = False
    daemon: str = ""


def read_behaviour(run_dir: Path, rank: int) -> Behaviour:
    """What `fake.json` says for this rank."""
    path = run_dir / BEHAVIOUR_FILE
    table = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return Behaviour(**{**table.get("*", {}), **table.get(str(rank), {})})


class Failure(Exception):
    """This rank fails now, in its own words."""

    def __init__(self, title: str, cause: str, *, usage: bool = False) -> None:
        super().__init__(cause)
        self.words = RankFailed(title, cause, "Try another one.", usage, "Traceback of a fake rank")


class ReplicaGroup:
    """What this rank has been given and has trained: its place in the data, and its weights."""

    def __init__(self, rank: FakeRank) -> None:
        self._rank = rank
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
            self._rank.send(Claim(self._sequence))
            grant = self._rank.wait_for(Grant)
            self._sequence += 1
            if grant.exhausted:
                return None
            self._grant, self._done_in_grant = grant, grant.offset
        return self._grant


class Hub:
    """An all-reduce of one small number over loopback: rank 0 in the middle."""

    def __init__(self, run_dir: Path, attempt: str, rank: int, world_size: int) -> None:
        self._rank = rank
        self._peers: list[socket.socket] = []
        meeting = run_dir / f".fake-hub-{attempt}"
        if world_size == 1:
            return
        if rank == 0:
            with socket.create_server(("127.0.0.1", 0)) as server:
                draft = meeting.with_suffix(".draft")
                draft.write_text(str(server.getsockname()[1]), encoding="utf-8")
                draft.replace(meeting)
                self._peers = [server.accept()[0] for _ in range(world_size - 1)]
            return
        while not meeting.exists():
            time.sleep(0.01)
        self._peers = [socket.create_connection(("127.0.0.1", int(meeting.read_text(encoding="utf-8"))))]

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
            raise Failure("A collective failed", f"[gloo/transport] Connection closed by peer ({error})") from None
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
    """One fake rank, from hello to bye."""

    def __init__(self) -> None:
        context = self.context = RankContext.from_env(os.environ)
        self.run_dir = context.run_dir
        self.rank, self.world_size, self.attempt = context.rank, context.world_size, context.attempt
        self.independent = context.mode == "independent"
        self.does = read_behaviour(self.run_dir, self.rank)
        self.config: dict[str, Any] = tomllib.loads(context.config_file.read_text(encoding="utf-8"))
        self.step = 0
        self.merges = 0
        self.stop_asked = self.commit_asked = self.finish = False
        self.orders: list[Merge | Merged] = []
        self.data: DataReady | None = None
        self._answers: list[Message] = []
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._sending = threading.Lock()
        self._savers: list[threading.Thread] = []
        self._closing = False
        self.group = ReplicaGroup(self)

    def run(self) -> int:
        self._misbehave("start")
        self._connect()
        self.phase("importing torch")
        if self.rank == 0:
            self.phase("preparing data")
            self._misbehave("data")
            (self.run_dir / "data").mkdir(exist_ok=True)
            self.send(DataReady(self.does.samples, 10, {"fake": True}))
        while self.data is None:
            self._note(self._inbox.get(timeout=60))
        hub = Hub(self.run_dir, str(self.attempt), self.rank, 1 if self.independent else self.world_size)
        self._restore()
        self._misbehave("ready")
        self.phase("ready")
        finished = self._train(hub)
        self._commit("finished" if finished else "stopped", surely=True)
        self._misbehave("finish")
        self.send(RankDone(self.step, finished))
        self._serve(lambda: self.finish)
        hub.close()
        self._closing = True
        self.send(Bye(self.step))
        self._socket.close()
        return 0

    # talking

    def send(self, message: Message) -> None:
        self.send_raw(encode(message))

    def send_raw(self, data: bytes) -> None:
        with self._sending:
            self._socket.sendall(data)

    def phase(self, name: str) -> None:
        self.send(Phase(name))

    def line(self, event: str, **fields: Any) -> bytes:
        value = {"ts": time.time(), "event": event, "rank": self.rank, "attempt": self.attempt, **fields}
        return json.dumps(value).encode() + b"\n"

    def wait_for(self, kind: type[M]) -> M:
        while True:
            for message in self._answers:
                if isinstance(message, kind):
                    self._answers.remove(message)
                    return message
            self._note(self._inbox.get(timeout=60))

    def _connect(self) -> None:
        token = "wrong" if self.does.bad_token else self.context.token
        self._socket = socket.create_connection(("127.0.0.1", self.context.port), timeout=10)
        self._lines = self._socket.makefile("rb")
        self.send(Hello("rank", token, RANK_PROTOCOL, rank=self.rank, attempt=self.attempt, pid=os.getpid()))
        answer = decode(self._lines.readline())
        if not isinstance(answer, Welcome):
            raise SystemExit(f"The host did not welcome this rank: {answer}")
        self._socket.settimeout(None)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for line in self._lines:
                message = decode(line)
                if isinstance(message, Message):
                    self._inbox.put(message)
        except (OSError, ValueError):
            pass  # closed
        if not self._closing and not self.does.ignore_eof:
            os._exit(HOST_GONE)

    def _poll(self) -> None:
        while not self._inbox.empty():
            self._note(self._inbox.get())

    def _note(self, message: Message) -> None:
        if isinstance(message, Stop):
            self.stop_asked = True
        elif isinstance(message, CommitPlease):
            self.commit_asked = True
        elif isinstance(message, Finish):
            self.finish = True
        elif isinstance(message, DataReady):
            self.data = message
        elif isinstance(message, Committed):
            self.group.committed(message.checkpoint)
        elif isinstance(message, Merge | Merged):
            self.orders.append(message)
        else:
            self._answers.append(message)

    # working

    def _restore(self) -> None:
        if self.context.checkpoint is None:
            return
        folder = self.context.checkpoint
        assert self.data is not None and self.data.starts is not None
        start = self.data.starts[self.rank]
        own = folder / f"rank{start.copy if start.copy.isdigit() else self.rank}.json"
        state = json.loads((own if own.exists() else folder / "rank0.json").read_text(encoding="utf-8"))
        self.step, self.group.samples_seen, self.group.weights = state["step"], state["samples_seen"], state["weights"]
        self.group.chunks_done, self.merges = state["chunks_done"], state["merges"]
        self.step = start.step
        if start.samples_seen is not None:
            self.group.samples_seen = start.samples_seen

    def _train(self, hub: Hub) -> bool:
        while self.step < self.does.steps:
            grant = self.group.train(self.step + 1, self.does.batch)
            if grant is None:
                return True
            hub.highest(0)  # as gradients are: nobody has made a step before all have
            self.step += 1
            time.sleep(self.does.step_s)
            self._report(grant)
            self._misbehave(self.step)
            self._poll()
            wish = hub.highest(2 if self._may_stop() else 1 if self.commit_asked else 0)
            if wish == 2:
                return False
            if wish == 1 or (self.does.commit_every and self.step % self.does.commit_every == 0):
                self.commit_asked = False
                self._commit("asked" if wish else "steps")
            if self._merge_is_due():
                self.send(MergeReady(self.merges + 1, self.step))
                due = self.merges + 1
                self._serve(lambda due=due: self.merges >= due or self.stop_asked)
                if self.stop_asked:
                    return False
        return True

    def _may_stop(self) -> bool:
        return self.stop_asked and self.does.hang_at != "stop"

    def _merge_is_due(self) -> bool:
        every = self.does.merge_every
        return bool(every) and self.independent and self.group.chunks_done // every > self.merges

    def _report(self, grant: Grant) -> None:
        loss = 4.0 / (1.0 + self.step / 10)
        lines = [
            self.line(
                "step", step=self.step, loss=loss, lr=0.001, tokens_per_s=1000.0, epoch=grant.epoch,
                block_id=grant.block_id, chunk_id=grant.chunk_id,
            )
        ]  # fmt: skip
        lines += [self.line("note", step=self.step, number=number) for number in range(self.does.flood)]
        if self.does.eval_every and self.step % self.does.eval_every == 0:
            lines.append(self.line("eval", step=self.step, val_loss=self.does.val_loss))
        self.send_raw(b"".join(lines))
        if self.step == 1:
            self.phase("first step")
            for text in self.does.raw:
                self.send_raw(text.encode("utf-8", "surrogateescape") + b"\n")

    def _serve(self, until: Any) -> None:
        while not until():
            try:
                self._note(self._inbox.get(timeout=0.2))
            except queue.Empty:
                continue
            self._poll()
            if self.commit_asked:
                self.commit_asked = False
                self._commit("asked", surely=True)
            while self.orders:
                order = self.orders.pop(0)
                if isinstance(order, Merge):
                    self._merge(order)
                else:
                    self.merges = order.round
                    self.group.weights = Path(order.path).read_text(encoding="utf-8")

    def _merge(self, order: Merge) -> None:
        time.sleep(self.does.merge_s)
        self._misbehave("merge")
        folder = Path(order.folder)
        losses = {f"rank {r}": read_behaviour(self.run_dir, r).val_loss for r in range(self.world_size)}
        best = min(range(self.world_size), key=lambda r: losses[f"rank {r}"])
        weights = (folder / f"weights_rank{best}.safetensors").read_text(encoding="utf-8")
        (folder / "merged.safetensors").write_text(weights, encoding="utf-8")
        self.send(MergeDone(order.round, order.checkpoint, "merged.safetensors", f"rank {best}", losses))

    # committing

    def _commit(self, reason: str, *, surely: bool = False) -> None:
        while True:
            self.send(CommitBegin(self.step, reason))
            answer = self.wait_for(CommitTo)
            if answer.checkpoint >= 0:
                break
            if not surely:
                return
            time.sleep(0.02)
        self.commit_asked = False
        for saver in self._savers:
            saver.join()
        part = self._part()
        position = self.group.position(self.step, answer.checkpoint)
        saver = threading.Thread(target=self._save, args=(Path(answer.folder), answer.checkpoint, part, position))
        self._savers = [saver]
        saver.start()
        if surely:
            saver.join()

    def _part(self) -> dict[str, str]:
        state = {
            "step": self.step, "samples_seen": self.group.samples_seen, "weights": self.group.weights,
            "chunks_done": self.group.chunks_done, "merges": self.merges,
        }  # fmt: skip
        files = {f"rank{self.rank}.json": json.dumps(state)}
        if self.independent:
            files[f"weights_rank{self.rank}.safetensors"] = self.group.weights
        elif self.rank == 0:
            files["weights.safetensors"] = self.group.weights
        return files

    def _save(self, folder: Path, checkpoint: int, part: dict[str, str], position: Position) -> None:
        self._misbehave("staging")
        time.sleep(self.does.commit_s)
        if self.does.failing_commits > 0:
            self.does.failing_commits -= 1
            self.send(CommitFailed(checkpoint, "The disk is full (a fake one)."))
            return
        staged = []
        for name, text in part.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
            data = text.encode()
            staged.append(StagedFile(name, len(data), hashlib.sha256(data).hexdigest()))
        self.send(CommitStaged(checkpoint, position, staged, self.does.val_loss if self.does.eval_every else None))

    # misbehaving

    def _misbehave(self, where: str | int) -> None:
        if self.does.fail_attempts and self.attempt not in self.does.fail_attempts:
            return
        if self.does.hang_at == where:
            print(f"fake rank {self.rank} hangs at {where}", flush=True)
            threading.Event().wait()
        if self.does.fail_at == where:
            print(f"fake rank {self.rank} fails at {where}: {self.does.fail_how}", flush=True)
            self._fail(where)

    def _fail(self, where: str | int) -> None:
        how = self.does.fail_how
        if how == "raise":
            raise Failure("Out of memory", f"A fake GPU is out of memory at {where}.")
        if how == "usage":
            raise Failure("The dataset is too small", "It holds not one training sample.", usage=True)
        if how == "kill" and sys.platform != "win32":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(int(how.partition(":")[2] or (0 if how == "quiet" else 9)))


def main() -> int:
    """Runs one fake rank; returns its exit code."""
    rank = FakeRank()
    if rank.does.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if rank.does.grandchild:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if rank.does.daemon:
        code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)"
        subprocess.run([sys.executable, "-c", code, rank.does.daemon], check=True)
    try:
        return rank.run()
    except Failure as failure:
        rank._closing = True
        rank.send(failure.words)
        return 2 if failure.words.usage else 1


def as_table(ranks: dict[str, dict[str, Any]]) -> str:
    """`fake.json` for these behaviours, checked."""
    for fields in ranks.values():
        dataclasses.replace(Behaviour(), **fields)
    return json.dumps(ranks)
