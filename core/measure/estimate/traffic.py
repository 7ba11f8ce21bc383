"""Bytes that ranks exchange in a step, mode by mode, and the seconds that this takes over a measured link. Pure.

Volumes are those of Rajbhandari et al. 2020 (ZeRO, section 7), with W ranks and a tensor of B bytes: an all-reduce
sends 2 (W - 1) / W × B from each rank, a gather or a reduce-scatter half of that. Two things differ here: gloo's
reduce-scatter is an all-reduce, and PyTorch's ZeRO stage 1 sums gradients as DDP does and then sends new weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from core.measure.estimate.figures import ModelFigures
from core.measure.estimate.memory import Layout
from core.measure.link import Link

# DDP's buckets; other engines' are of the same order.
BUCKET_BYTES: Final = 25 << 20


@dataclass(frozen=True, slots=True)
class Traffic:
    """What each rank takes part in during one step.

    Attributes:
        reduced_bytes: Tensors that are summed over the ranks and stay whole.
        moved_bytes: Tensors that are gathered, or summed so that each rank keeps its share.
        collectives: Operations, each of which costs at least the link's latency.
    """

    reduced_bytes: float = 0.0
    moved_bytes: float = 0.0
    collectives: float = 0.0

    def sent_bytes(self, ranks: int) -> float:
        """What each rank sends."""
        return (2 * self.reduced_bytes + self.moved_bytes) * (ranks - 1) / ranks if ranks > 1 else 0.0

    def seconds(self, link: Link, *, shared_memory: bool = False, by_fsdp: bool = False) -> float:
        """How long this takes where nothing of it overlaps with computing.

        Args:
            link: Between the ranks.
            shared_memory: What is summed goes through it.
            by_fsdp: PyTorch's FSDP exchanges it, which copies everything several times.
        """
        if by_fsdp and link.sharded_mb_per_s is not None and link.sharded_latency_s is not None:
            moved_s = (self.reduced_bytes + self.moved_bytes / 2) / (link.sharded_mb_per_s * 1e6)
            return self.collectives * link.sharded_latency_s + moved_s
        rate = link.mb_per_s * 1e6
        shared = link.shared_mb_per_s if shared_memory else None
        reduce_rate = rate if shared is None else max(rate, shared * 1e6)
        latency_s = self.collectives * link.latency_s if shared is None else 0.0
        return latency_s + self.reduced_bytes / reduce_rate + self.moved_bytes / 2 / rate


def step_traffic(figures: ModelFigures, layout: Layout, *, by_nccl: bool, sync_every: int | None = None) -> Traffic:
    """The traffic of a step.

    Args:
        figures: The model's.
        layout: How it is trained.
        by_nccl: NCCL connects the ranks, which sums and shares out in one operation.
        sync_every: Steps between two rounds of independent ranks; None: they never synchronise.
    """
    if layout.ranks < 2:
        return Traffic()
    trained = figures.trainable_bytes
    buckets = max(1, math.ceil(trained / BUCKET_BYTES))
    if layout.mode.is_sharded:
        return _sharded(figures, layout, buckets, by_nccl=by_nccl)
    if layout.mode.is_connected:
        return Traffic(trained, 0.0, buckets)
    return Traffic() if sync_every is None else Traffic(trained / sync_every, 0.0, buckets / sync_every)


def _sharded(figures: ModelFigures, layout: Layout, buckets: int, *, by_nccl: bool) -> Traffic:
    """Stages 2 and 3 share out gradients after each micro-batch, stage 3 also gathers weights in each pass."""
    trained = float(figures.trainable_bytes)
    weights = figures.parameter_bytes * (0.5 if layout.narrow else 1.0)
    if layout.stage == 1 and not layout.by_deepspeed:
        return Traffic(trained, trained, 2 * buckets)
    times = layout.accumulation if layout.stage > 1 else 1
    gathers = 2 * layout.accumulation if layout.stage == 3 else 1
    parts = buckets if layout.by_deepspeed else _blocks(figures)
    reduced, scattered = (0.0, times * trained) if by_nccl else (times * trained, 0.0)
    return Traffic(reduced, scattered + gathers * weights, parts * (times + gathers))


def _blocks(figures: ModelFigures) -> int:
    """Parts that FSDP gathers by themselves, and what is left."""
    return 1 + (round(figures.blocks_bytes / figures.block_bytes) if figures.block_bytes else 0)
