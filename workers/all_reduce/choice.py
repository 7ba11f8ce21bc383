"""Choice of the gradient all-reduce: shared memory where all ranks can use it, else gloo or NCCL.

Nothing is timed at a start: shared memory was 5.7 times as fast as gloo at 100 MiB between two ranks of one CPU, 25
times at 64 KiB, and at least 1.3 times with three ranks that had to copy (docs/benchmarks.md). A few sums are compared
with gloo's bit by bit before it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from core.errors import ConfigError, RankdeckError
from core.processes import identity
from workers.all_reduce.ddp_hook import BucketAllReduce, Reduce, all_reduce_bucket
from workers.all_reduce.in_place_sum import InPlaceSum
from workers.all_reduce.peer_watch import PeerWatch, State
from workers.all_reduce.shared_all_reduce import SharedAllReduce, arena_bytes, refusal
from workers.all_reduce.shared_arena import ArenaError, SharedArena, join_arena

# `auto`: the fastest. `shared`: the same, also where NCCL is there. `plain`: what the process group does by itself.
# All of them give the same mean, bit by bit between two ranks.
WANTED: Final = ("auto", "shared", "plain")

CHECK_TIMEOUT_S: Final = 20.0
_CHECKED_SIZES: Final = (1, 1000, 100_003)
# The third time that a tensor comes, it is summed where it lies.
_CHECKED_ROUNDS: Final = 3


class Place(Protocol):
    """The fields of `workers.strategies.RankPlace` that the choice depends on."""

    @property
    def rank(self) -> int: ...
    @property
    def world_size(self) -> int: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def backend(self) -> str: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def nodes(self) -> int: ...


@dataclass(slots=True)
class GradientAllReduce:
    """The chosen all-reduce, to be closed at the end of training and before the process group.

    Attributes:
        name: "shared", "gloo" or "nccl".
        summary: One sentence for the log.
        fallback: The reason why the wanted one cannot be used; None where it can.
    """

    name: str
    summary: str
    fallback: str | None = None
    _shared: _SharedMemory | None = None

    @property
    def through_shared_memory(self) -> bool:
        return self._shared is not None

    @property
    def sync_wait_s(self) -> float | None:
        """Seconds of the last step's all-reduce after its last gradient; None where only DDP knows them."""
        return self._shared.buckets.sync_wait_s if self._shared else None

    def reduce(self, tensor: Tensor) -> None:
        """Sum a tensor over the ranks, for measuring; shared memory leaves their mean."""
        if self._shared is not None:
            self._shared.buckets.all_reduce(tensor, last=True).wait()
        else:
            dist.all_reduce(tensor)

    def total(self, numbers: Tensor, group: dist.ProcessGroup | None) -> None:
        """Sum a few numbers over the ranks in place, by the training thread, outside of a backward pass.

        Args:
            numbers: On the CPU.
            group: Sums them where there is no shared memory, whose sum of two ranks has the same bits.
        """
        if self._shared is not None:
            self._shared.all_reduce.sum(numbers)  # gloo wakes a thread of its own in every rank: 1 to 3 ms
        else:
            dist.all_reduce(numbers, group=group)

    def register(self, ddp: DistributedDataParallel) -> None:
        """Register as the module's communication hook; once, before its first backward pass."""
        if self._shared is not None:
            ddp.register_comm_hook(self._shared.buckets, all_reduce_bucket)

    def close(self) -> None:
        """End the thread and release the shared memory; a second call does nothing."""
        if self._shared is not None:
            self._shared.close()
            self._shared = None


class _SharedMemory:
    """The parts of an all-reduce through shared memory; every rank makes one at the same time."""

    def __init__(self, group: dist.ProcessGroup, place: Place) -> None:
        self.arena: SharedArena = join_arena(group, place.rank, arena_bytes(place.world_size))
        try:
            peers = _processes(group, place.rank, place.world_size)
            self.watch = PeerWatch(self.arena.header, place.rank, peers, CHECK_TIMEOUT_S)
            self.all_reduce = SharedAllReduce(self.arena, place.rank, place.world_size, self.watch)
            self.in_place = InPlaceSum(self.all_reduce, self.arena.header, place.rank, place.world_size, self.watch)
            # What comes from a GPU has to be copied anyway.
            self.reduce: Reduce = self.in_place.sum if place.device.type == "cpu" else self._copied
            self.buckets = BucketAllReduce(self.reduce, place.device, 1.0 / place.world_size)
        except BaseException:
            self.arena.close()
            raise

    def _copied(self, tensor: Tensor, factor: float, _: int) -> None:
        self.all_reduce.sum(tensor, factor)

    def close(self, state: State = State.LEFT) -> None:
        self.watch.say(state)
        self.watch.close()
        self.buckets.close()
        self.in_place.forget()
        self.arena.close()


def choose_all_reduce(group: dist.ProcessGroup, place: Place, wanted: str = "auto") -> GradientAllReduce:
    """Decide how gradients travel. Every rank has to call it, with the same arguments but for the rank.

    Args:
        group: A gloo group of all ranks over the CPU, for agreeing (`make_process_group`).
        place: This rank.
        wanted: One of `WANTED`; raises `ConfigError` for anything else.
    """
    if wanted not in WANTED:
        raise ConfigError(
            "gradient_exchange", f"gradient_exchange is {wanted!r}.", f"Choose one of {', '.join(WANTED)}."
        )
    plain = "nccl" if place.backend == "nccl" else "gloo"
    if wanted == "plain" or place.world_size == 1 or (wanted == "auto" and plain == "nccl"):
        return GradientAllReduce(plain, f"Gradients go over {plain}.")
    problem = "the process group is NCCL's" if plain == "nccl" else refusal(place.world_size)
    if place.nodes > 1:
        problem = f"the ranks are on {place.nodes} machines"
    if problem:
        return _without_shared_memory(plain, wanted, problem)
    try:
        shared = _SharedMemory(group, place)
    except ArenaError as error:
        return _without_shared_memory("gloo", wanted, str(error))
    try:
        problem = _check(group, place, shared)
    except BaseException:
        shared.close(State.FAILED)
        raise
    if problem:
        shared.close()
        return _without_shared_memory("gloo", wanted, problem)
    # The check's tensors are not the gradients'. All ranks forget at the same time, or one would take another way.
    shared.in_place.forget()
    shared.watch.timeout_s = place.timeout_s
    copied = f" They are copied on their way, because {shared.in_place.problem}." if shared.in_place.problem else ""
    return GradientAllReduce("shared", f"Gradients go through shared memory.{copied}", _shared=shared)


def _without_shared_memory(plain: str, wanted: str, problem: str) -> GradientAllReduce:
    summary = f"Gradients go over {plain}, because shared memory cannot be used: {problem}."
    return GradientAllReduce(plain, summary, fallback=problem if wanted == "shared" else None)


def _processes(group: dist.ProcessGroup, rank: int, ranks: int) -> list[identity.ProcessId]:
    """Every rank's process, by pid and start time; raises `ArenaError` where a rank cannot see another's."""
    own = identity.own()
    table = torch.zeros(ranks, 2, dtype=torch.float64)
    table[rank, 0], table[rank, 1] = own.pid, own.started
    dist.all_reduce(table, group=group)
    found = [identity.ProcessId(int(pid), started) for pid, started in table.tolist()]
    # A wait in shared memory has no connection that could break: a peer that died is known by its process alone. In
    # containers of their own, ranks may not see each other's.
    if not _all_agree(group, all(identity.is_alive(process) for process in found)):
        raise ArenaError("the ranks cannot see each other's processes")
    return found


def _check(group: dist.ProcessGroup, place: Place, shared: _SharedMemory) -> str:
    """Compare sums with gloo's; empty where they are the same on all ranks, else the problem as far as it is known.

    All ranks run the same collectives in the same order, whatever goes wrong in one of them: a failure is only noted,
    and the notes are summed, so that all ranks come to the same end.
    """
    buckets, problem, broken = BucketAllReduce(shared.reduce, place.device, 1.0), "", False
    for count in _CHECKED_SIZES:
        # Sums of small whole numbers are exact in any order.
        numbers = torch.arange(count, dtype=torch.float32).remainder_(19.0).add_(float(place.rank + 1))
        expected, got = numbers.to(place.device, copy=True), numbers.to(place.device, copy=True)
        dist.all_reduce(expected)  # in the default group, which is DDP's
        for _ in range(_CHECKED_ROUNDS):
            got.copy_(numbers)
            try:
                if not broken:
                    buckets.all_reduce(got, last=True).wait()
                    problem = problem or ("" if torch.equal(expected, got) else "its sums differ from gloo's")
            except Exception as error:
                shared.watch.say(State.FAILED)  # so that the others do not wait
                cause = error.cause if isinstance(error, RankdeckError) else f"{type(error).__name__}: {error}"
                problem, broken = cause.rstrip("."), True
            dist.barrier(group=group)
    return "" if _all_agree(group, not problem) else problem or "it failed on another rank"


def _all_agree(group: dist.ProcessGroup, agrees: bool) -> bool:
    votes = torch.tensor([int(agrees)], dtype=torch.int64)
    dist.all_reduce(votes, op=dist.ReduceOp.MIN, group=group)
    return bool(votes.item())
