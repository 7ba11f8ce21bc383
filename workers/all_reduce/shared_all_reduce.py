"""All-reduce through shared memory: the sum of a tensor over all ranks of one machine, in place.

A tensor goes through in slices that stay in a core's cache. Each rank has a few slots in the arena; a slice fills one.
Two ranks: each puts its slice into its slot and adds the other's to its own. That moves as many bytes as a
reduce-scatter with gather, with half the waits. Three and more: each slice is cut into one shard a rank. A rank puts
the others' shards into its slot, adds up its own shard from all slots, leaves the sum there, and takes the others'.

Sums are taken in the order of ranks everywhere, so all ranks hold the same bits afterwards; with two ranks those of
gloo. A run that was stopped and resumed ends with the same weights because of that.

Why no locks: a rank writes data first and its counter afterwards, the others read the counter first. x86-64 keeps both
orders between cores (Intel SDM vol. 3A, 9.2.2; AMD APM vol. 2, 7.2), an aligned 64-bit store is never seen in half, and
`memcpy` ends its streaming stores with a fence. Other processors promise less: `refusal` names them.

A rank works ahead while it has free slots, and waits only when all are taken (docs/decisions/0011, docs/benchmarks.md).
"""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from workers.all_reduce.peer_watch import PeerWatch, Word
from workers.all_reduce.shared_arena import HEADER_BYTES, LINE_COUNTERS, MAX_RANKS, SharedArena

# Best of 64 KiB to 1 MiB with 1 MiB of second-level cache: slots of both sides and the slice itself fit.
SLICE_BYTES: Final = 256 << 10
_SHARD_ALIGNMENT: Final = 64
_SUMMED: Final = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32)

# Of each rank: 2 MiB, so models of any size pass through 4 MiB (two ranks) to 16 MiB (eight).
SLOTS: Final = 8


def refusal(ranks: int) -> str | None:
    """The reason why this machine cannot sum through shared memory; None for none."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return f"the processor is {platform.machine()}, whose memory order is not x86-64's"
    if not 2 <= ranks <= MAX_RANKS:
        return f"{ranks} ranks are not between 2 and {MAX_RANKS}"
    return None


def library(dtype: torch.dtype) -> Any:
    """NumPy or torch, whose `add` and `multiply` take the same arguments, for slices of a dtype.

    NumPy starts a loop in a quarter of the time that torch takes, which is a fifth of what a slice takes. It has no
    bfloat16, and its float16 is not vectorised. Both release the interpreter lock, so the training thread runs on.
    """
    return torch if dtype in (torch.float16, torch.bfloat16) else np


def operand(tensor: Tensor, do: Any) -> Any:
    return tensor.numpy() if do is np else tensor


def split_factor(dtype: torch.dtype, factor: float) -> tuple[float, float]:
    """Factors for each rank's part and for the sum; one of them is 1.

    The sum is in the cache anyway, so it is scaled last; float16 would overflow until then.
    """
    return (factor, 1.0) if dtype == torch.float16 else (1.0, factor)


def arena_bytes(ranks: int) -> int:
    """The memory that `ranks` ranks need together."""
    return HEADER_BYTES + ranks * SLOTS * SLICE_BYTES


class SharedAllReduce:
    """Sums tensors over all ranks; all ranks call it with the same sizes and dtypes in the same order.

    Args:
        arena: At least `arena_bytes(ranks)` of shared memory.
        rank, ranks: This rank's place among 2 to 8.
        watch: Waits for the others.
    """

    def __init__(self, arena: SharedArena, rank: int, ranks: int, watch: PeerWatch) -> None:
        self._arena, self._watch = arena, watch
        self._rank, self._ranks = rank, ranks
        self._peers = [peer for peer in range(ranks) if peer != rank]
        self._header = arena.header
        self._done = 0
        self._views: dict[torch.dtype, list[list[Any]]] = {}
        start, size = self._slot_place(rank, 0), SLOTS * SLICE_BYTES
        arena.view(torch.uint8, start, size).zero_()  # so that no all-reduce waits for page faults

    def sum(self, tensor: Tensor, factor: float = 1.0) -> None:
        """Replace `tensor` by the sum over all ranks of `factor` times theirs; raise as `PeerWatch.wait`.

        Args:
            tensor: On the CPU; float32, float64, float16, bfloat16, int64 or int32. Others raise `TypeError`.
            factor: 1 / ranks makes the mean. To float16 it is applied before the sum, as DDP does, so that nothing
                overflows; to all else afterwards, which for powers of two gives the same bits. None for integers.
        """
        if tensor.device.type != "cpu" or tensor.dtype not in _SUMMED:
            raise TypeError(f"cannot sum {tensor.dtype} on {tensor.device} through shared memory")
        if factor != 1.0 and not tensor.dtype.is_floating_point:
            raise TypeError(f"cannot scale {tensor.dtype}")
        plain = tensor.detach()
        flat = plain.reshape(-1)
        steps = (_Pairs if self._ranks == 2 else _Shards)(self, flat, factor)
        while steps.finished < steps.count:
            steps.advance()
        self._done += steps.count
        if flat.data_ptr() != plain.data_ptr():  # it was not contiguous
            plain.copy_(flat.view(plain.shape))

    def _slot_place(self, rank: int, slot: int) -> int:
        return HEADER_BYTES + (rank * SLOTS + slot) * SLICE_BYTES

    def slots(self, dtype: torch.dtype, do: Any) -> list[list[Any]]:
        """Views of all slots, by rank and number."""
        if dtype not in self._views:
            count = SLICE_BYTES // dtype.itemsize
            self._views[dtype] = [
                [operand(self._arena.view(dtype, self._slot_place(rank, slot), count), do) for slot in range(SLOTS)]
                for rank in range(self._ranks)
            ]
        return self._views[dtype]


class _Steps(ABC):
    """What happens to the slices of one tensor; `published` and `finished` count those that are that far."""

    def __init__(self, owner: SharedAllReduce, flat: Tensor, factor: float) -> None:
        self._do = library(flat.dtype)
        self._flat, self._size = operand(flat, self._do), flat.numel()
        self._early, self._late = split_factor(flat.dtype, factor)
        self._slots = owner.slots(flat.dtype, self._do)
        self._per = SLICE_BYTES // flat.dtype.itemsize
        self._first = owner._done
        self._rank, self._ranks, self._peers = owner._rank, owner._ranks, owner._peers
        self._header, self._wait = owner._header, owner._watch.wait
        self.count = -(-self._size // self._per)
        self.published = self.finished = 0

    @abstractmethod
    def advance(self) -> None:
        """Do one step of the oldest slice that is ready; wait when there is none."""

    def _view(self, number: int) -> tuple[Any, int]:
        start = number * self._per
        end = min(self._size, start + self._per)
        return self._flat[start:end], end - start

    def _slot(self, rank: int, number: int) -> Any:
        return self._slots[rank][(self._first + number) % SLOTS]

    def _say(self, word: int, number: int) -> None:
        """Publish that this rank has done that step of that slice."""
        # After the data, in program order: on x86-64 no core sees this store before those (module docstring). Counters
        # only grow, over all tensors, so a value is never taken for that of an earlier slice in the same slot.
        self._header[self._rank * LINE_COUNTERS + word] = self._first + number + 1

    def _behind(self, word: int, number: int) -> int:
        """A peer that has not yet done that step of that slice; -1 for none."""
        target = self._first + number + 1
        for peer in self._peers:
            if self._header[peer * LINE_COUNTERS + word] < target:
                return peer
        return -1

    def _can_publish(self) -> bool:
        """Whether there is another slice, and a slot that no rank reads any more."""
        number = self.published
        ahead = number - self.finished
        # This rank has finished the slice that filled this slot before, and so have all peers: none reads it now.
        return number < self.count and ahead < SLOTS and self._behind(Word.FINISHED, number - SLOTS) < 0

    def _wait_for(self, word: int, number: int) -> None:
        peer = self._behind(word, number)
        if peer >= 0:
            self._wait(peer, word, self._first + number + 1)


class _Pairs(_Steps):
    """Two ranks."""

    def advance(self) -> None:
        """Add what is there; else publish; else wait."""
        # The oldest slice first: finishing it frees a slot for which the other rank may be waiting.
        if self.finished < self.published and self._behind(Word.PUBLISHED, self.finished) < 0:
            self._add_other(self.finished)
            self.finished += 1
        elif self._can_publish():
            self._publish(self.published)
            self.published += 1
        elif self.finished < self.published:
            self._wait_for(Word.PUBLISHED, self.finished)
        else:
            self._wait_for(Word.FINISHED, self.published - SLOTS)

    def _publish(self, number: int) -> None:
        view, size = self._view(number)
        if self._early != 1.0:
            self._do.multiply(view, self._early, out=view)
        self._slot(self._rank, number)[:size] = view
        self._say(Word.PUBLISHED, number)

    def _add_other(self, number: int) -> None:
        view, size = self._view(number)
        other = self._peers[0]
        if other == 0:
            self._do.add(self._slot(other, number)[:size], view, out=view)
        else:
            self._do.add(view, self._slot(other, number)[:size], out=view)
        if self._late != 1.0:
            self._do.multiply(view, self._late, out=view)
        self._say(Word.FINISHED, number)


class _Shards(_Steps):
    """Three ranks and more."""

    reduced = 0

    def advance(self) -> None:
        """Gather what is summed; else sum what is there; else publish; else wait."""
        if self.finished < self.reduced and self._behind(Word.REDUCED, self.finished) < 0:
            self._gather(self.finished)
            self.finished += 1
        elif self.reduced < self.published and self._behind(Word.PUBLISHED, self.reduced) < 0:
            self._reduce(self.reduced)
            self.reduced += 1
        elif self._can_publish():
            self._publish(self.published)
            self.published += 1
        elif self.finished < self.reduced:
            self._wait_for(Word.REDUCED, self.finished)
        elif self.reduced < self.published:
            self._wait_for(Word.PUBLISHED, self.reduced)
        else:
            self._wait_for(Word.FINISHED, self.published - SLOTS)

    def _shard(self, rank: int, size: int) -> slice:
        per = -(-size // (self._ranks * _SHARD_ALIGNMENT)) * _SHARD_ALIGNMENT
        return slice(min(size, rank * per), min(size, (rank + 1) * per))

    def _publish(self, number: int) -> None:
        """The others' shards into this rank's slot."""
        view, size = self._view(number)
        if self._early != 1.0:
            self._do.multiply(view, self._early, out=view)
        slot, own = self._slot(self._rank, number), self._shard(self._rank, size)
        slot[: own.start] = view[: own.start]
        slot[own.stop : size] = view[own.stop :]
        self._say(Word.PUBLISHED, number)

    def _reduce(self, number: int) -> None:
        """The sum of this rank's shard into the tensor, and into its slot, whose own part is still free."""
        view, size = self._view(number)
        own = self._shard(self._rank, size)
        if own.stop > own.start:
            ranks = range(self._ranks)
            given = [view[own] if rank == self._rank else self._slot(rank, number)[own] for rank in ranks]
            self._add_up(given, self._slot(self._rank, number)[own], view[own])
        self._say(Word.REDUCED, number)

    def _add_up(self, given: Sequence[Any], result: Any, view: Any) -> None:
        self._do.add(given[0], given[1], out=result)
        for more in given[2:]:
            self._do.add(result, more, out=result)
        if self._late != 1.0:
            self._do.multiply(result, self._late, out=result)
        view[:] = result

    def _gather(self, number: int) -> None:
        view, size = self._view(number)
        for peer in self._peers:
            shard = self._shard(peer, size)
            view[shard] = self._slot(peer, number)[shard]
        self._say(Word.FINISHED, number)
