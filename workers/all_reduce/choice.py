"""Choice of the gradient all-reduce: shared memory or gloo, measured at start-up, the same on all ranks.

Which is faster depends on the machine: between two ranks of one CPU shared memory was 5.7 times as fast as gloo at
100 MiB and 25 times at 64 KiB (docs/benchmarks.md), but only 1.3 times at 100 MiB where three ranks had to copy. So
both sum a tensor of up to the model's own size, are compared bit by bit, and the faster one is taken: 0.3 s in all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from core.errors import ConfigError
from core.processes import identity
from workers.all_reduce.compression import COMPRESSIONS, register_compression
from workers.all_reduce.ddp_hook import BucketAllReduce, Reduce, all_reduce_bucket
from workers.all_reduce.in_place_sum import InPlaceSum
from workers.all_reduce.peer_watch import PeerWatch, State
from workers.all_reduce.shared_all_reduce import SharedAllReduce, arena_bytes, refusal
from workers.all_reduce.shared_arena import ArenaError, SharedArena, join_arena
from workers.all_reduce.timing_test import Speeds, run_timing_test

# `auto`: the fastest that changes no bit. `shared`: shared memory even where gloo is as fast. `plain`: what the process
# group does by itself, gloo or NCCL. `fp16`, `bf16`: fewer bytes, other gradients.
WANTED: Final = ("auto", "shared", "plain", *COMPRESSIONS)

TIMING_TEST_TIMEOUT_S: Final = 20.0
_WIRES: Final = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Place(Protocol):
    """What has to be known of a rank; `workers.strategies.RankPlace` has it."""

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
    """The way that was chosen. To be closed at the end of training, before the process group.

    Attributes:
        name: "shared", "gloo", "nccl", "fp16" or "bf16". bf16 may go through shared memory, too.
        summary: One sentence for the log.
        fallback: Why what was wanted could not be had; None when it could.
        speeds: What the self-test measured; None where there was none.
    """

    name: str
    summary: str
    fallback: str | None = None
    speeds: Speeds | None = None
    _shared: _SharedMemory | None = None

    @property
    def through_shared_memory(self) -> bool:
        """Whether gradients bypass the process group."""
        return self._shared is not None

    @property
    def sync_wait_s(self) -> float | None:
        """How long the last step's all-reduce took after its last gradient; None when only DDP knows."""
        return self._shared.buckets.sync_wait_s if self._shared else None

    def reduce(self, tensor: Tensor) -> None:
        """Sums a tensor over the ranks the way that gradients go, for measuring; shared memory leaves their mean."""
        if self._shared is not None:
            self._shared.buckets.all_reduce(tensor, last=True).wait()
        else:
            _gloo_sum(_WIRES.get(self.name))(tensor)

    def register(self, ddp: DistributedDataParallel) -> None:
        """Hangs itself into the module; once, before its first backward pass."""
        if self._shared is not None:
            ddp.register_comm_hook(self._shared.buckets, all_reduce_bucket)
        elif self.name in COMPRESSIONS:
            register_compression(self.name, ddp)

    def close(self) -> None:
        """Ends its thread and lets go of the shared memory; a second time does nothing."""
        if self._shared is not None:
            self._shared.close()
            self._shared = None


class _SharedMemory:
    """All that an all-reduce through shared memory needs; every rank makes one at the same time."""

    def __init__(self, group: dist.ProcessGroup, place: Place, wire: torch.dtype | None) -> None:
        self.arena: SharedArena = join_arena(group, place.rank, arena_bytes(place.world_size))
        try:
            peers = _processes(group, place.rank, place.world_size)
            self.watch = PeerWatch(self.arena.header, place.rank, peers, TIMING_TEST_TIMEOUT_S)
            self.all_reduce = SharedAllReduce(self.arena, place.rank, place.world_size, self.watch, wire)
            self.in_place = InPlaceSum(self.all_reduce, self.arena.header, place.rank, place.world_size, self.watch)
            # What is rounded on its way, or comes from a GPU, has to be copied anyway.
            self.reduce: Reduce = self.in_place.sum if wire is None and place.device.type == "cpu" else self._copied
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


def choose_all_reduce(
    group: dist.ProcessGroup, place: Place, model_bytes: int, wanted: str = "auto"
) -> GradientAllReduce:
    """Decides how gradients travel. Every rank has to call it, with the same arguments but for the rank.

    Takes about 0.3 s where it measures.

    Args:
        group: A gloo group of all ranks over the CPU, for agreeing (`make_process_group`).
        place: This rank.
        model_bytes: Size of all gradients together.
        wanted: One of `WANTED`.

    Raises:
        ConfigError: `wanted` is none of them.
    """
    if wanted not in WANTED:
        raise ConfigError(
            "gradient_exchange", f"gradient_exchange is {wanted!r}.", f"Choose one of {', '.join(WANTED)}."
        )
    plain = "nccl" if place.backend == "nccl" else "gloo"
    if wanted == "fp16" or (wanted == "bf16" and plain == "nccl"):
        return GradientAllReduce(wanted, f"Gradients go over {plain} as {wanted}.")
    if wanted == "plain" or place.world_size == 1 or (wanted == "auto" and plain == "nccl"):
        return GradientAllReduce(plain, f"Gradients go over {plain}.")
    problem = "the process group is NCCL's" if plain == "nccl" else refusal(place.world_size)
    if place.nodes > 1:
        problem = f"the ranks are on {place.nodes} machines"
    if problem:
        return _over_gloo(plain, wanted, problem)
    return _measure(group, place, model_bytes, wanted)


def _measure(group: dist.ProcessGroup, place: Place, model_bytes: int, wanted: str) -> GradientAllReduce:
    # bf16 halves the bytes that cross, but converting costs more than that within one machine: it is there by name.
    wire = torch.bfloat16 if wanted == "bf16" else None
    try:
        shared = _SharedMemory(group, place, wire)
    except ArenaError as error:
        return _over_gloo("gloo", wanted, str(error))
    ready = State.FAILED
    try:
        outcome = run_timing_test(
            group, place.rank, place.device, model_bytes, _gloo_sum(wire), _shared_sum(shared, place.device)
        )
        slower = wanted != "shared" and isinstance(outcome, Speeds) and outcome.shared_mb_per_s <= outcome.gloo_mb_per_s
        ready = State.LEFT if slower or isinstance(outcome, str) else State.TRAINING
    finally:
        if ready != State.TRAINING:
            shared.close(ready)
    if slower or isinstance(outcome, str):
        return _over_gloo("gloo", wanted, outcome)
    # The test's tensors are not the gradients'. All ranks forget at the same time, or one would take another way.
    shared.in_place.forget()
    shared.watch.timeout_s = place.timeout_s
    problem = shared.in_place.problem
    copied = f" They are copied on their way, because {problem}." if problem else ""
    summary = f"Gradients go through shared memory{' as bf16' if wire else ''}: {_figures(outcome)}.{copied}"
    return GradientAllReduce("bf16" if wire else "shared", summary, speeds=outcome, _shared=shared)


def _over_gloo(plain: str, wanted: str, outcome: Speeds | str) -> GradientAllReduce:
    name = "bf16" if wanted == "bf16" else plain
    over = f"Gradients go over {plain}{' as bf16' if wanted == 'bf16' else ''}"
    if isinstance(outcome, Speeds):
        return GradientAllReduce(name, f"{over}, which was faster here: {_figures(outcome)}.", speeds=outcome)
    summary = f"{over}, because shared memory cannot be used: {outcome}."
    return GradientAllReduce(name, summary, fallback=outcome if wanted == "shared" else None)


def _figures(speeds: Speeds) -> str:
    return f"{speeds.shared_mb_per_s:,.0f} MB/s through shared memory, {speeds.gloo_mb_per_s:,.0f} MB/s over gloo"


def _processes(group: dist.ProcessGroup, rank: int, ranks: int) -> list[identity.ProcessId]:
    """Every rank's process, by pid and start time; refused where a rank cannot see another's."""
    own = identity.own()
    table = torch.zeros(ranks, 2, dtype=torch.float64)
    table[rank, 0], table[rank, 1] = own.pid, own.started
    dist.all_reduce(table, group=group)
    found = [identity.ProcessId(int(pid), started) for pid, started in table.tolist()]
    # A wait in shared memory has no connection that could break: a peer that died is known by its process alone. In
    # containers of their own, ranks may not see each other's.
    seen = torch.tensor([int(all(identity.is_alive(process) for process in found))], dtype=torch.int64)
    dist.all_reduce(seen, op=dist.ReduceOp.MIN, group=group)
    if not seen.item():
        raise ArenaError("the ranks cannot see each other's processes")
    return found


def _gloo_sum(wire: torch.dtype | None) -> Callable[[Tensor], None]:
    """In the default group, which is the one that DDP takes."""

    def add_up(tensor: Tensor) -> None:
        sent = tensor if wire is None else tensor.to(wire)
        dist.all_reduce(sent)
        if wire is not None:
            tensor.copy_(sent)

    return add_up


def _shared_sum(shared: _SharedMemory, device: torch.device) -> Callable[[Tensor], None]:
    """As the hook does it, staging included."""
    buckets = BucketAllReduce(shared.reduce, device, 1.0)

    def add_up(tensor: Tensor) -> None:
        try:
            buckets.all_reduce(tensor, last=True).wait()
        except BaseException:
            shared.watch.say(State.FAILED)  # so that the others do not wait
            raise

    return add_up
