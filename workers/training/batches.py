"""Batches of optimizer steps, made from granted chunks, and the exact position in the data at every boundary.

A replica group's samples form one stream: chunk after chunk, each in an order that depends on (seed, epoch, chunk)
alone. A global batch is the next `global_batch` samples of it, and every rank of the group takes a contiguous slice.
So the order of samples does not depend on the number of ranks, and a resumed run continues with the very next sample
(docs/decisions/0003). A batch may cross chunks but never an epoch's end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from core.protocol.messages import ChunkDone, Grant, Position, SkippedBatch

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """The cuts of a dataset into blocks and chunks, as in the ledger; the last of each may be short.

    Attributes:
        seed: Decides the order of samples inside every chunk.
        shuffled: False: samples of a chunk come as they are numbered.
    """

    samples: int
    samples_per_block: int
    chunk_size: int
    seed: int
    shuffled: bool = True

    @property
    def chunks_per_block(self) -> int:
        return math.ceil(self.samples_per_block / self.chunk_size)

    def chunk_index(self, block_id: int, chunk_id: int) -> int:
        return block_id * self.chunks_per_block + chunk_id

    def owner(self, epoch: int, block_id: int, chunk_id: int, world_size: int) -> int:
        return (self.chunk_index(block_id, chunk_id) + epoch) % world_size

    def order(self, epoch: int, block_id: int, chunk_id: int, start: int, count: int) -> Indices:
        """Dataset indices of a chunk's samples in training order, shape (count,)."""
        if not self.shuffled:
            return np.arange(start, start + count, dtype=np.int64)
        generator = np.random.default_rng([self.seed, epoch, self.chunk_index(block_id, chunk_id)])
        return (start + generator.permutation(count)).astype(np.int64)

    def sizes(self) -> Iterator[int]:
        for block_start in range(0, self.samples, self.samples_per_block):
            block = min(self.samples_per_block, self.samples - block_start)
            for chunk_start in range(0, block, self.chunk_size):
                yield min(self.chunk_size, block - chunk_start)

    def group_steps(self, epochs: int, group: int, groups: int, group_batch: int) -> int:
        """Optimizer steps of a replica group in that many epochs."""
        shares = [0] * groups
        for index, size in enumerate(self.sizes()):
            shares[index % groups] += size
        steps = [math.ceil(share / group_batch) for share in shares]
        cycles, rest = divmod(epochs, groups)
        return cycles * sum(steps) + sum(steps[(group - epoch) % groups] for epoch in range(rest))


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Samples of one forward pass.

    Attributes:
        indices: Dataset indices, shape (micro-batch size,).
        weight: Factor of the mean loss over these samples, so that the mean of the ranks' gradients is the gradient of
            the global batch's mean.
    """

    indices: Indices
    weight: float


@dataclass(frozen=True, slots=True)
class StepBatch:
    """This rank's share of one optimizer step.

    Attributes:
        micro_batches: At least one; a rank whose share is empty gets a sample with weight 0, since the others wait
            for it in the all-reduce.
        samples: Samples in this rank's share.
        global_samples: Samples in the whole batch, over the replica group's ranks.
        epoch, block_id, chunk_id: The batch's last chunk.
        finished: Chunks whose last sample is in this batch.
        wait_s: Seconds spent waiting for grants.
        indices: Dataset indices of the whole batch.
        first: The first of them that is this rank's.
    """

    micro_batches: tuple[MicroBatch, ...]
    samples: int
    global_samples: int
    epoch: int
    block_id: int
    chunk_id: int
    finished: tuple[ChunkDone, ...]
    wait_s: float
    indices: Indices
    first: int

    @property
    def own(self) -> Indices:
        return self.indices[self.first : self.first + self.samples]


@dataclass(slots=True)
class _Chunk:
    grant: Grant
    order: Indices
    done: int

    @property
    def left(self) -> int:
        return self.grant.count - self.done


@dataclass(slots=True)
class GroupProgress:
    """Counters of a replica group over all attempts, saved with the weights; skipped samples are not counted."""

    samples_seen: int = 0
    chunks_done: int = 0


@dataclass(slots=True)
class GroupBatches:
    """The stream of a replica group, cut into batches; one object a rank.

    Args:
        plan: The dataset's chunks.
        claim: Asks the host for the n-th chunk of this attempt and waits for its grant.
        global_batch: Samples in a step over the replica group's ranks.
        micro_batch: Samples of a pass at most.
        group_rank, group_size: This rank's place in its group.
        progress: Counters of earlier attempts.
        shares: Samples of a whole batch for each rank; None for equal shares. May be changed between steps.
        alike: Every rank makes the same number of micro-batches, because ranks synchronise in each of them.
    """

    plan: ChunkPlan
    claim: Callable[[int], Grant]
    global_batch: int
    micro_batch: int
    group_rank: int = 0
    group_size: int = 1
    progress: GroupProgress = field(default_factory=GroupProgress)
    shares: tuple[int, ...] | None = None
    alike: bool = False
    _claims: int = 0
    _chunk: _Chunk | None = None
    _exhausted: bool = False
    _uncommitted: list[ChunkDone] = field(default_factory=list)
    _skipped: list[SkippedBatch] = field(default_factory=list)
    _named_in: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def exhausted(self) -> bool:
        return self._exhausted and self._chunk is None

    @property
    def skipped_ranges(self) -> int:
        """Ranges of samples in skipped batches that the host doesn't know of yet."""
        return sum(len(batch.ranges) for batch in self._skipped)

    @property
    def between_chunks(self) -> bool:
        return self._chunk is None or self._chunk.done == 0

    def next(self, step: int) -> StepBatch | None:
        """This rank's share of the batch of optimizer step `step`, or None when the data is used up."""
        slices: list[Indices] = []
        finished: list[ChunkDone] = []
        taken, waited, last = 0, 0.0, None
        while taken < self.global_batch:
            waited += self._ensure_chunk()
            chunk = self._chunk
            if chunk is None or (last is not None and chunk.grant.epoch != last.epoch):
                break
            count = min(self.global_batch - taken, chunk.left)
            slices.append(chunk.order[chunk.done : chunk.done + count])
            chunk.done, taken, last = chunk.done + count, taken + count, chunk.grant
            if chunk.left == 0:
                grant = chunk.grant
                finished.append(ChunkDone(grant.epoch, grant.block_id, grant.chunk_id, step, grant.count))
                self._chunk = None
        if last is None:
            return None
        self.progress.samples_seen += taken
        self.progress.chunks_done += len(finished)
        self._uncommitted.extend(finished)
        batch = np.concatenate(slices)
        first, share, micro_batches = self._share(batch)
        place = (last.epoch, last.block_id, last.chunk_id)
        return StepBatch(micro_batches, share, taken, *place, tuple(finished), waited, batch, first)

    def cut_again(self, batch: StepBatch) -> StepBatch:
        """The same samples in micro-batches of the current size."""
        _, _, micro_batches = self._share(batch.indices)
        return replace(batch, micro_batches=micro_batches)

    def skip(self, batch: StepBatch, step: int) -> None:
        """Note that nothing of the last batch went into the weights; every rank of the replica group calls it."""
        self.progress.samples_seen -= batch.global_samples
        self._skipped.append(SkippedBatch(batch.epoch, step, sample_ranges(batch.indices)))

    def position(self, step: int, checkpoint: int | None = None) -> Position:
        """The replica group's position after `step` steps, staged for `checkpoint` where one is given."""
        if checkpoint is not None:
            self._named_in[checkpoint] = self.progress.chunks_done, step
        partial = []
        if self._chunk is not None and self._chunk.done > 0:
            grant = self._chunk.grant
            partial.append([grant.epoch, grant.block_id, grant.chunk_id, self._chunk.done])
        return Position(step, self.progress.samples_seen, list(self._uncommitted), partial, list(self._skipped))

    def committed(self, checkpoint: int) -> None:
        """Leave out of further positions what that checkpoint holds."""
        named = self._named_in.pop(checkpoint, None)
        if named is not None:
            chunks_done, step = named
            newer = self.progress.chunks_done - chunks_done
            self._uncommitted = self._uncommitted[len(self._uncommitted) - newer :]
            self._skipped = [batch for batch in self._skipped if batch.step > step]
            self._named_in = {n: at for n, at in self._named_in.items() if n > checkpoint}

    def _ensure_chunk(self) -> float:
        """Claim the next chunk if none is at hand; return the seconds waited for the host."""
        if self._exhausted or self._chunk is not None:
            return 0.0
        # The monotonic clock of Python 3.12 and older has ticks of 16 ms on Windows.
        began = time.perf_counter()
        grant = self.claim(self._claims)
        self._claims += 1
        if grant.exhausted:
            self._exhausted = True
        else:
            order = self.plan.order(grant.epoch, grant.block_id, grant.chunk_id, grant.start, grant.count)
            self._chunk = _Chunk(grant, order, grant.offset)
        return time.perf_counter() - began

    def _share(self, batch: Indices) -> tuple[int, int, tuple[MicroBatch, ...]]:
        """This rank's slice of a global batch: its first sample, its length, its micro-batches.

        With n samples in the batch and W ranks whose gradients are averaged, a micro-batch of m samples has weight
        m · W / n, so that the sum over micro-batches and the mean over ranks make the mean over n.
        """
        total, size = len(batch), self.group_size
        bounds = self._bounds(total)
        first = bounds[self.group_rank]
        share = batch[first : bounds[self.group_rank + 1]]
        if self.alike:
            most = max(end - start for start, end in pairwise(bounds))
            parts = np.array_split(share, math.ceil(most / self.micro_batch))
        elif self.shares is not None:  # alike in size, since a small last one would cost nearly as much as a whole one
            parts = np.array_split(share, max(1, math.ceil(len(share) / self.micro_batch)))
        else:
            parts = [share[i : i + self.micro_batch] for i in range(0, max(1, len(share)), self.micro_batch)]
        idle = MicroBatch(batch[:1], 0.0)
        return first, len(share), tuple(MicroBatch(p, len(p) * size / total) if len(p) else idle for p in parts)

    def _bounds(self, total: int) -> list[int]:
        """The first sample of each rank's slice of `total` samples, and `total` itself."""
        if self.shares is None:
            return [total * rank // self.group_size for rank in range(self.group_size + 1)]
        return [total * upto // self.global_batch for upto in accumulate(self.shares, initial=0)]


def sample_ranges(indices: Indices) -> list[list[int]]:
    """Dataset indices in rising order, neighbours together: ``[[first, last], …]``."""
    numbers = np.unique(indices)
    return [[int(run[0]), int(run[-1])] for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)]


def saved_progress(values: Mapping[str, object]) -> GroupProgress:
    return GroupProgress(int(str(values.get("samples_seen", 0))), int(str(values.get("chunks_done", 0))))
