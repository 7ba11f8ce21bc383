"""The sum of tensors over all ranks where they lie: every rank sees every rank's memory, and nothing is copied first.

DDP puts its gradients into the same buckets in every step. Once a bucket has come a second time, all ranks move theirs
into shared memory (`shared_arena`). From then on each rank adds up one shard of all ranks' buckets and writes the sum
into all of them. Until then, and where it cannot be, slices go through slots (`shared_all_reduce`).

Ranks first offer what they know of the bucket: new, known, or shared and under which number. So all take the same way,
whatever one of them forgot. Sums have the same bits either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from workers.all_reduce.peer_watch import PeerWatch, Word
from workers.all_reduce.shared_all_reduce import SharedAllReduce, library, operand, split_factor
from workers.all_reduce.shared_arena import ADDRESS_BYTES, LINE_COUNTERS, ShareError, attach, refusal, share

# Of each rank's bucket at once: those of two to four ranks stay in 1 MiB of second-level cache.
CHUNK_BYTES: Final = 128 << 10
# A shared bucket costs one open file for each rank, and many systems allow 1,024.
MOST_FILES: Final = 400
_ALIGNMENT: Final = 64

_NEW, _KNOWN, _FIRST_SHARED = 0, 1, 2
_STATE_BITS: Final = 16


@dataclass(slots=True)
class _Bucket:
    """One of a step's buckets.

    Attributes:
        tensor: The newest one; held, so that no other tensor gets its place in memory.
        shared: All ranks' tensors, flat, in the order of ranks; empty: they are not shared.
        number: The same on all ranks: `_NEW`, `_KNOWN`, or a number from `_FIRST_SHARED` on.
    """

    tensor: Tensor
    shared: Sequence[Any] = ()
    number: int = _KNOWN

    def is_of(self, tensor: Tensor) -> bool:
        known = self.tensor
        return (known.data_ptr(), known.numel(), known.dtype) == (tensor.data_ptr(), tensor.numel(), tensor.dtype)


class InPlaceSum:
    """Sums tensors that come again and again; all ranks call it with the same sizes, dtypes and places, in one order.

    Args:
        slots: For tensors that are not shared.
        header: The arena's, with the ranks' counters.
        rank, ranks: This rank's place among 2 to 8.
        watch: Waits for the others.

    Attributes:
        problem: The reason why nothing is shared in place; empty for none.
    """

    def __init__(self, slots: SharedAllReduce, header: memoryview, rank: int, ranks: int, watch: PeerWatch) -> None:
        self._slots, self._header, self._watch = slots, header, watch
        self._rank, self._ranks = rank, ranks
        self._buckets: dict[int, _Bucket] = {}
        self._scratch = torch.empty(CHUNK_BYTES, dtype=torch.uint8)
        self._rounds = 0
        self._numbers = _FIRST_SHARED
        self.problem = ""

    @property
    def shared(self) -> int:
        """The number of buckets that are summed where they lie."""
        return sum(bool(bucket.shared) for bucket in self._buckets.values())

    def sum(self, tensor: Tensor, factor: float, place: int) -> None:
        """As `SharedAllReduce.sum`; `place` is the tensor's number in its step."""
        if tensor.numel() == 0 or not tensor.is_contiguous():  # the same on all ranks
            self._slots.sum(tensor, factor)
            return
        tensor = tensor.detach()
        bucket = self._buckets.get(place)
        if bucket is not None and not bucket.is_of(tensor):
            bucket = None
        together = self._agree(_NEW if bucket is None or self.problem else bucket.number)
        if together >= _FIRST_SHARED and bucket is not None:
            self._sum_in_place(bucket, factor)
            return
        self._slots.sum(tensor, factor)
        if place < MOST_FILES // self._ranks:
            self._buckets[place] = self._share(tensor) if together == _KNOWN else _Bucket(tensor)

    def forget(self) -> None:
        """Release all tensors; all ranks at the same time."""
        self._buckets.clear()

    def _agree(self, number: int) -> int:
        """Wait for all ranks; the number that all of them offer, else the least of what they know."""
        self._rounds += 1
        self._header[self._rank * LINE_COUNTERS + Word.OFFERED] = (self._rounds << _STATE_BITS) | number
        for peer in range(self._ranks):
            if peer != self._rank:
                self._watch.wait(peer, Word.OFFERED, self._rounds << _STATE_BITS)
        offers = [
            self._header[rank * LINE_COUNTERS + Word.OFFERED] & ((1 << _STATE_BITS) - 1) for rank in range(self._ranks)
        ]
        return number if offers == [number] * self._ranks else min(*offers, _KNOWN)

    def _share(self, tensor: Tensor) -> _Bucket:
        """All ranks' memory of this tensor, if all ranks can see it; they agree through the slots."""
        reason = refusal(2 * self._ranks * tensor.untyped_storage().nbytes())
        if self._numbers >= 1 << _STATE_BITS:
            reason = "buckets changed too often"
        letters = torch.zeros(self._ranks, ADDRESS_BYTES, dtype=torch.int32)
        if not reason:
            try:
                address = share(tensor).encode("ascii")
                letters[self._rank, : len(address)] = torch.tensor(list(address), dtype=torch.int32)
            except ShareError as error:
                reason = str(error)
        self._slots.sum(letters)
        flat: list[Tensor] = []
        if not reason:
            try:
                flat = [self._seen(rank, letters[rank], tensor).view(-1) for rank in range(self._ranks)]
            except (ShareError, ValueError) as error:
                reason = str(error)
        failed = torch.tensor([int(bool(reason))], dtype=torch.int64)
        self._slots.sum(failed)
        if failed.item():
            self.problem = reason or "another rank could not do it"
            return _Bucket(tensor)
        self._numbers += 1
        return _Bucket(tensor, [operand(part, library(tensor.dtype)) for part in flat], self._numbers - 1)

    def _seen(self, rank: int, letter: Tensor, own: Tensor) -> Tensor:
        if rank == self._rank:
            return own
        address = bytes(letter.tolist()).rstrip(b"\0").decode("ascii")
        if not address:
            raise ShareError(f"rank {rank} could not share its own")
        return attach(address, own)

    def _sum_in_place(self, bucket: _Bucket, factor: float) -> None:
        tensor = bucket.tensor
        do, size = library(tensor.dtype), tensor.numel()
        shard = -(-size // (self._ranks * _ALIGNMENT)) * _ALIGNMENT
        end = min(size, (self._rank + 1) * shard)
        per = CHUNK_BYTES // tensor.element_size()
        scratch = operand(self._scratch.view(tensor.dtype), do)
        early, late = split_factor(tensor.dtype, factor)
        for start in range(min(size, self._rank * shard), end, per):
            chunk = slice(start, min(end, start + per))
            _add_up(do, [part[chunk] for part in bucket.shared], self._rank, scratch[: chunk.stop - start], early, late)
        self._header[self._rank * LINE_COUNTERS + Word.SUMMED] = self._rounds
        for peer in range(self._ranks):
            if peer != self._rank:
                self._watch.wait(peer, Word.SUMMED, self._rounds)


def _add_up(do: Any, parts: list[Any], rank: int, scratch: Any, early: float, late: float) -> None:
    """One chunk of all ranks, in their order; the sum goes into this rank's first, which is in the cache by then."""
    if early != 1.0:
        for part in parts:
            do.multiply(part, early, out=part)
    total = parts[0]
    for number, part in enumerate(parts[1:], 2):
        last = number == len(parts) and late == 1.0
        out = parts[rank] if last else scratch
        do.add(total, part, out=out)
        total = out
    if late != 1.0:
        do.multiply(total, late, out=parts[rank])
    for number, part in enumerate(parts):
        if number != rank:
            part[:] = parts[rank]
