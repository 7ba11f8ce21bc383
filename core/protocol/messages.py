"""Messages between a run's host, its ranks and its clients: frozen dataclasses, encoded by `core.protocol.codec`.

Standard library only, because it also runs in a rank's environment.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

CLIENT_PROTOCOL: Final = 1
# Version 1, of 0.1, calls the checkpoint a generation. Clients do not name it, so theirs is unchanged.
RANK_PROTOCOL: Final = 3

Role = Literal["rank", "client"]
Waits = Literal["yes", "no", "perhaps"]

# All of them, by their names on the wire.
MESSAGE_TYPES: Final[dict[str, type[Message]]] = {}


@dataclass(frozen=True, slots=True)
class Message:
    """The base of every message; `type` on the wire is the class's registered name."""


@typing.dataclass_transform(frozen_default=True, field_specifiers=(field,))
def _message(name: str) -> Callable[[type[Any]], Any]:
    """Make a class a frozen dataclass and register it by its name on the wire."""

    def register(cls: type[Any]) -> type[Any]:
        MESSAGE_TYPES[name] = dataclass(frozen=True, slots=True)(cls)
        return MESSAGE_TYPES[name]

    return register


# --- the first line of every connection ------------------------------------------------------------------


@_message("challenge")
class Challenge(Message):
    """The host's first line to a peer on another machine, whose `Hello` answers with a proof of the token."""

    nonce: str


@_message("hello")
class Hello(Message):
    """The first line from a rank or a client; anything else, or 5 s of silence, closes the connection."""

    role: Role
    token: str
    protocol: int = CLIENT_PROTOCOL
    rank: int = -1
    attempt: int = 0
    pid: int = 0


@_message("welcome")
class Welcome(Message):
    """The host's answer to an accepted `Hello`."""

    protocol: int = CLIENT_PROTOCOL
    run_id: str = ""


@_message("refused")
class Refused(Message):
    """The host's last line before it closes a connection it does not accept."""

    reason: str


# --- rank → host -----------------------------------------------------------------------------------------


# A `Phase` that may last for minutes, in which a rank says nothing.
COMPILING: Final = "compiling the model"


@_message("phase")
class Phase(Message):
    """The phase of a starting rank: "importing torch", "preparing data", "rendezvous", `COMPILING`, "ready",
    "first step".

    A self-contained program (`core.recipes.manifest`) says "running" once it runs, and again while it prints: it
    need not ever name a step. When it falls silent and uses the processor, it says "computing".
    """

    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RankStart:
    """The beginning of a rank, by the ledger and its checkpoint (`core.checkpoints.restore_plan`).

    Attributes:
        steps_left: Optimizer steps that its replica group still has to make; None where there is no end to them.
        copy: The copy of weights and optimizer state that it loads where each rank wrote its own: a rank's number or
            "average"; empty where there is one set only.
        samples_seen: The first value of its replica group's count; None where the saved number holds.
    """

    step: int
    steps_left: int | None = None
    copy: str = ""
    samples_seen: int | None = None


@_message("data_ready")
class DataReady(Message):
    """Rank 0 has prepared the run's `data/` folder. The host keeps it, adds `start` and passes it on to every rank.

    Attributes:
        samples: Training samples in the dataset; the ledger counts these.
        info: The recipe's values for its ranks and the window (vocabulary size, tokens, …).
        chunk_size: Samples in a chunk, for a program with data of its own; None: as in the config.
        start: The beginning of the rank that receives it, from the host.
    """

    samples: int
    val_samples: int
    info: dict[str, Any] = field(default_factory=dict)
    chunk_size: int | None = None
    start: RankStart | None = None


@_message("claim")
class Claim(Message):
    """Asks for the `sequence`-th chunk of this rank's replica group in this attempt (0, 1, 2, …).

    Ranks that train in step share a replica group and get the same answer for the same sequence.
    """

    sequence: int


@dataclass(frozen=True, slots=True)
class ChunkDone:
    """A chunk whose every sample was trained or skipped, with this replica group's optimizer step at that moment."""

    epoch: int
    block_id: int
    chunk_id: int
    optimizer_step: int
    samples: int


@dataclass(frozen=True, slots=True)
class SkippedBatch:
    """The batch of one optimizer step that was left out of the weights (`workers.training.non_finite`).

    Attributes:
        ranges: Its samples, dataset indices in rising order: ``[[first, last], …]``, both included.
    """

    epoch: int
    step: int
    ranges: list[list[int]]

    @property
    def samples(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)


@dataclass(frozen=True, slots=True)
class Position:
    """The place of a replica group in the data at a step boundary: exactly what the weights have seen.

    Attributes:
        samples_seen: Samples this replica group has trained on, over all attempts.
        completed: Chunks completed since the last committed checkpoint, oldest first.
        partial: Chunks begun and not finished: ``[[epoch, block_id, chunk_id, samples_done], …]``.
        skipped: Batches left out since the last committed checkpoint, oldest first; chunks count their samples all the
            same, `samples_seen` does not.
    """

    step: int
    samples_seen: int = 0
    completed: list[ChunkDone] = field(default_factory=list)
    partial: list[list[int]] = field(default_factory=list)
    skipped: list[SkippedBatch] = field(default_factory=list)


@_message("commit_begin")
class CommitBegin(Message):
    """A rank stands at the boundary after `step` and wants its state committed; answered by `CommitTo`.

    Attributes:
        round: Rounds of local SGD behind it, 0 where there are none: parts of different rounds make no checkpoint.
        join: It takes part in a checkpoint that is being made and begins none.
        diverged: Its weights are not finite: its last part stands for it, where there is one.
    """

    step: int
    reason: str
    round: int = 0
    join: bool = False
    diverged: bool = False


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that a rank wrote and fsynced into a checkpoint's folder."""

    name: str
    size: int
    sha256: str


@_message("commit_staged")
class CommitStaged(Message):
    """This rank's part of a checkpoint lies on disk. With every rank's part there, the host commits it."""

    checkpoint: int
    position: Position
    files: list[StagedFile]
    val_loss: float | None = None
    diverged: bool = False


@_message("commit_failed")
class CommitFailed(Message):
    """This rank could not write its part (disk full, permission); the checkpoint is dropped, training continues."""

    checkpoint: int
    cause: str


@_message("rank_done")
class RankDone(Message):
    """This rank trains no further and waits for the host.

    Attributes:
        finished: True when all the work asked for is done, False when it was told to stop.
    """

    step: int
    finished: bool


@_message("goal_progress")
class GoalProgress(Message):
    """The progress towards a goal that ends the run before its steps and epochs do (`workers.training.task.Goal`).

    Attributes:
        total_steps: The expected number of optimizer steps; None while that cannot be estimated.
        text: Such as "450 of 600 episodes".
    """

    total_steps: int | None
    text: str


@_message("micro_batch_halved")
class MicroBatchHalved(Message):
    """A replica group trains in smaller micro-batches from here on, since memory ran out."""

    micro_batch: int
    halvings: int
    ranks: list[int] = field(default_factory=list)


@_message("merge_done")
class MergeDone(Message):
    """Rank 0 has measured each rank and the merge, and written the chosen weights.

    Attributes:
        chosen: ``"rank 0"``, ``"rank 1"``, … or ``"average"``.
    """

    checkpoint: int
    file: str
    chosen: str
    val_losses: dict[str, float]


@_message("rank_failed")
class RankFailed(Message):
    """A rank's last message: its failure for a person, with the traceback for the log.

    Attributes:
        usage: True when the person's input is at fault, so that no fallback can help.
        peer_lost: True when it failed because another rank had exited: a secondary failure.
        window_step: The next step without a command-line option; empty where it is the same.
        kind: A failure that the host may answer: ``non_finite``, ``out_of_memory``; empty for any other.
    """

    title: str
    cause: str
    next_step: str
    usage: bool = False
    traceback: str = ""
    peer_lost: bool = False
    window_step: str = ""
    kind: str = ""


@_message("stacks")
class Stacks(Message):
    """Answer to `StacksPlease`.

    Attributes:
        text: The stacks of all threads as Python prints them, the training thread's first.
        place: Where the training thread is: "recipes/mine/train.py:57 in loss".
        waits: Whether it waits for other ranks in a collective. "perhaps": it is in a backward pass, which computes and
            waits.
    """

    text: str
    place: str
    waits: Waits


@_message("bye")
class Bye(Message):
    """The last line of a rank that ends as it should; `dropped` metrics lines were lost while the host was slow."""

    step: int
    dropped: int = 0


# --- host → rank -----------------------------------------------------------------------------------------


@_message("grant")
class Grant(Message):
    """Answer to `Claim`: samples ``[start, start + count)`` of the dataset, or nothing more to do.

    Attributes:
        offset: Samples of this chunk that the weights have seen already (in its shuffled order); skip them.
        exhausted: No chunk is left for this replica group within the epochs asked for; the other fields mean nothing.
    """

    sequence: int
    epoch: int = 0
    block_id: int = 0
    chunk_id: int = 0
    start: int = 0
    count: int = 0
    offset: int = 0
    exhausted: bool = False


@_message("commit_please")
class CommitPlease(Message):
    """Commit at the next step boundary (by the clock, or because another rank committed its replica group)."""

    reason: str


@_message("commit_to")
class CommitTo(Message):
    """Answer to `CommitBegin`: write your part into this folder (it exists), then say `CommitStaged`.

    A negative `checkpoint` means: write nothing. -1: the one before is still being written, go on training and ask
    again; -2 (`core.host.commits.coordinator.KEPT`): this rank has diverged, and the part that it wrote last stands
    for it.
    """

    checkpoint: int
    folder: str = ""


@_message("committed")
class Committed(Message):
    """The checkpoint is whole on disk; completed chunks in it need not be named again."""

    checkpoint: int


@_message("stop")
class Stop(Message):
    """Commit at the next step boundary, say `RankDone(finished=False)`, wait."""

    reason: str = "asked"


@_message("stacks_please")
class StacksPlease(Message):
    """Report where all threads are. A rank answers also while its training thread hangs."""


@_message("merge")
class Merge(Message):
    """To rank 0, when every rank waits: measure and merge the weights that this checkpoint holds."""

    checkpoint: int
    folder: str


@_message("finish")
class Finish(Message):
    """Nothing more to do: say `Bye` and end."""


# --- client → host ---------------------------------------------------------------------------------------


@_message("stop_request")
class StopRequest(Message):
    """Stop the run: at the next step boundary with everything committed, or `now` without."""

    now: bool = False


# --- host → client ---------------------------------------------------------------------------------------


@_message("appended")
class Appended(Message):
    """`metrics.jsonl` is whole up to this many bytes."""

    size_bytes: int


@_message("run_status")
class RunStatus(Message):
    """What `state.json` says, sent on every change (`core.run_folder.store.RunState.as_dict()`)."""

    state: dict[str, Any]
