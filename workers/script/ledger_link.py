"""`rankdeck.chunks` and `rankdeck.checkpoint`, between the user's program and the run's ledger.

A chunk that the program claims is one of the ledger's. A commit makes a checkpoint without weights: each rank's record
names the program's own checkpoint that belongs to it (`script_rank<r>.json`). With the manifest it exists, and only
then does the program give its checkpoint the final name; if it died in between, that is done at the next start.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core.errors import RankdeckError
from core.files.atomic import replace_with_retry, write_atomic
from core.held_files import read_utf8
from core.protocol.messages import (
    ChunkDone,
    Claim,
    CommitBegin,
    CommitFailed,
    CommitPlease,
    CommitStaged,
    Committed,
    CommitTo,
    DataReady,
    Grant,
    Message,
    Position,
    StagedFile,
)

# A commit that not every rank joins is given up, so that the program continues.
COMMIT_LIMIT_S: Final = 45.0
BUSY_PAUSE_S: Final = 0.05
CHUNKS_IN_A_DATASET: Final = 100

Answer = Callable[..., None]


def record_name(rank: int) -> str:
    """The name of a rank's record in a checkpoint."""
    return f"script_rank{rank}.json"


@dataclass(frozen=True, slots=True)
class Record:
    """A rank's record in a checkpoint.

    Attributes:
        checkpoint: The program's own checkpoint; None where this rank saved none.
        staged: Its temporary name, until it gets its own.
        samples_seen, step: As in `core.protocol.messages.Position`.
    """

    checkpoint: str | None = None
    staged: str | None = None
    samples_seen: int = 0
    step: int = 0


def read_record(folder: Path | None, rank: int) -> Record:
    """Read a rank's record; an empty one where there is none."""
    if folder is None:
        return Record()
    try:
        values = json.loads(read_utf8(folder / record_name(rank)))
        return Record(**{f.name: values[f.name] for f in dataclasses.fields(Record) if f.name in values})
    except (OSError, ValueError, TypeError):
        return Record()


def _is_partial(staged: Path, final: Path) -> bool:
    """True for a file named by `rankdeck.checkpoint`: the record of a received run could name any other."""
    name = re.escape(final.stem) + r"\.partial-[0-9a-f]{8}" + re.escape(final.suffix)
    return staged.parent == final.parent and re.fullmatch(name, staged.name) is not None


def finish_record(record: Record) -> None:
    """Rename a committed checkpoint, if its program died before it could, and remove unfinished ones."""
    if record.checkpoint is None:
        return
    final = Path(record.checkpoint)
    if record.staged is not None and (staged := Path(record.staged)).exists() and _is_partial(staged, final):
        if final.is_dir():
            shutil.rmtree(final, ignore_errors=True)
        replace_with_retry(staged, final)
    if final.parent.is_dir():
        for left in final.parent.glob(f"{glob.escape(final.stem)}.partial-????????{final.suffix}"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                # A scanner holds it: the next start removes it.
                with contextlib.suppress(OSError):
                    left.unlink(missing_ok=True)


@dataclass(slots=True)
class _Commit:
    """A commit that the program waits for."""

    answer: Answer
    position: Position
    record: Record
    deadline: float
    ask_at: float | None = None
    number: int | None = None


@dataclass(slots=True)
class LedgerLink:
    """One rank's link. Everything is called from the wrapper's loop.

    Attributes:
        independent: The rank has chunks of its own and commits by itself.
        send: Sends a message to the host.
        before: This rank's record in the newest checkpoint, at first in the one that the run resumes from.
        max_chunk: The largest chunk where the program names no size.
    """

    rank: int
    independent: bool
    send: Callable[[Message], None]
    before: Record
    max_chunk: int
    _data: DataReady | None = None
    _asked: list[tuple[int, Answer]] = field(default_factory=list)
    _announced: bool = False
    _claims: dict[int, Answer] = field(default_factory=dict)
    _grants: dict[int, Grant] = field(default_factory=dict)
    _commit: _Commit | None = None
    _partial: list[list[int]] = field(default_factory=list)

    @property
    def is_waiting(self) -> bool:
        return bool(self._asked or self._claims or self._commit is not None)

    # what the program asks

    def ask_data(self, samples: int, chunk_size: int | None, answer: Answer) -> None:
        """Answer a call of `rankdeck.chunks`."""
        if self._data is not None:
            self._answer_data(samples, answer)
            return
        self._asked.append((samples, answer))
        if self.rank == 0 and not self._announced:
            self._announced = True
            size = chunk_size or min(self.max_chunk, max(1, -(-samples // CHUNKS_IN_A_DATASET)))
            self.send(DataReady(samples, 0, {}, chunk_size=size))

    def ask_claim(self, sequence: int, answer: Answer) -> None:
        """Claim the program's next chunk."""
        self._claims[sequence] = answer
        self.send(Claim(sequence))

    def ask_commit(
        self, done: list[list[int]], step: int | None, staged: str | None, final: str | None, answer: Answer
    ) -> None:
        """Commit the program's written checkpoint; the program waits for the answer."""
        if self._commit is not None:
            answer(error="the checkpoint before is not committed yet")
            return
        position = self._position(done, step)
        record = Record(final or self.before.checkpoint, staged, position.samples_seen, position.step)
        now = time.monotonic()
        self._commit = _Commit(answer, position, record, now + COMMIT_LIMIT_S)
        self.send(CommitBegin(position.step, "checkpoint"))

    # what the host says

    def received(self, message: Message) -> None:
        if isinstance(message, DataReady):
            self._data = message
            asked, self._asked = self._asked, []
            for samples, answer in asked:
                self._answer_data(samples, answer)
        elif isinstance(message, Grant):
            self._grants[message.sequence] = message
            if (waiting := self._claims.pop(message.sequence, None)) is not None:
                waiting(ok=dataclasses.asdict(message))
        elif isinstance(message, CommitTo):
            self._commit_to(message)
        elif isinstance(message, Committed):
            self._committed(message.checkpoint)
        elif isinstance(message, CommitPlease):
            self._please()

    def tick(self, now: float) -> None:
        """Ask again after "not now"; give up after the time limit."""
        commit = self._commit
        if commit is None:
            return
        if now > commit.deadline:
            self._commit = None
            commit.answer(error="not every rank called rankdeck.checkpoint at the same place, or the disk is too slow")
        elif commit.ask_at is not None and now >= commit.ask_at:
            commit.ask_at = None
            self.send(CommitBegin(commit.position.step, "checkpoint"))

    # inside

    def _answer_data(self, samples: int, answer: Answer) -> None:
        assert self._data is not None
        if samples == self._data.samples:
            answer(ok={"samples": samples})
        else:
            answer(error=f"rank 0 has {self._data.samples} samples in its dataset, and this rank has {samples}")

    def _position(self, done: list[list[int]], step: int | None) -> Position:
        """The data that this rank's weights have seen, by the program's report on each chunk it holds."""
        completed, partial = [], []
        seen = self.before.samples_seen
        for sequence, samples in done:
            grant = self._grants.get(sequence)
            if grant is None:
                continue
            seen += samples - grant.offset
            if samples >= grant.count:
                completed.append(grant)
            elif samples > grant.offset:
                partial.append([*_chunk_of(grant), samples])
        at = seen if step is None else step
        return Position(at, seen, [ChunkDone(*_chunk_of(grant), at, grant.count) for grant in completed], partial)

    def _commit_to(self, message: CommitTo) -> None:
        commit = self._commit
        if message.checkpoint < 0:
            if commit is not None:
                commit.ask_at = time.monotonic() + BUSY_PAUSE_S
            return
        if commit is not None:
            commit.number = message.checkpoint
            position, record = commit.position, commit.record
        else:
            position = Position(self.before.step, self.before.samples_seen, partial=self._partial)
            record = self.before
        data = (json.dumps(dataclasses.asdict(record)) + "\n").encode("utf-8")
        path = Path(message.folder) / record_name(self.rank)
        try:
            write_atomic(path, data)
        except RankdeckError as error:
            self.send(CommitFailed(message.checkpoint, error.cause))
            return
        file = StagedFile(path.name, len(data), hashlib.sha256(data).hexdigest())
        self.send(CommitStaged(message.checkpoint, position, [file]))

    def _committed(self, checkpoint: int) -> None:
        commit = self._commit
        if commit is None or commit.number != checkpoint:
            return
        self._commit = None
        whole = {_chunk_of(chunk) for chunk in commit.position.completed}
        partial = {(epoch, block, chunk): samples for epoch, block, chunk, samples in commit.position.partial}
        self._grants = {
            sequence: dataclasses.replace(grant, offset=partial.get(_chunk_of(grant), grant.offset))
            for sequence, grant in self._grants.items()
            if _chunk_of(grant) not in whole
        }
        self.before = dataclasses.replace(commit.record, staged=None)
        self._partial = commit.position.partial
        commit.answer(ok={"checkpoint": checkpoint})

    def _please(self) -> None:
        commit = self._commit
        if commit is not None:
            if commit.number is not None:  # the host had to drop it
                commit.number, commit.ask_at = None, time.monotonic()
        elif self.independent:
            self.send(CommitBegin(self.before.step, "with another rank", join=True))


def _chunk_of(message: Grant | ChunkDone) -> tuple[int, int, int]:
    return message.epoch, message.block_id, message.chunk_id
