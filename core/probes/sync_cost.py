"""Cost of synchronising: bytes a step, and the share of time spent waiting, predicted from a measured link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from core.formatting import megabytes
from core.records import Limits, Text, Whole

Rate = Annotated[float, Limits(1e-6, 1e12)]

BYTES_PER_PARAMETER: Final = 4
"""Weights and gradients travel as fp32."""


@dataclass(frozen=True, slots=True)
class Link:
    """How fast tensors are summed over some devices, measured (`core.probes.link_speed`).

    Attributes:
        mb_per_s: Millions of bytes of tensor a second through an all-reduce, in the long run.
        latency_s: What an all-reduce of next to nothing takes.
        ranks: Devices that took part.
        backend: "gloo" or "nccl".
        shared_mb_per_s: The same through shared memory, as DDP sums gradients between CPU devices; None where that is
            not possible.
        sharded_mb_per_s, sharded_latency_s: The same in passes of PyTorch's FSDP, with its copies; None where they
            were not timed.
    """

    mb_per_s: Rate
    latency_s: Annotated[float, Limits(0, 1e6)]
    ranks: Whole
    backend: Text
    shared_mb_per_s: Rate | None = None
    sharded_mb_per_s: Rate | None = None
    sharded_latency_s: Annotated[float, Limits(0, 1e6)] | None = None

    def all_reduce_s(self, size_bytes: float) -> float:
        """Seconds to sum a tensor of this size over the devices."""
        return self.latency_s + size_bytes / (self.mb_per_s * 1e6)


@dataclass(frozen=True, slots=True)
class Price:
    """What an interval costs.

    Attributes:
        bytes_per_step: Sent by each device, on average over the steps of a round.
        wait_s_per_step: Spent in the exchange, likewise.
        wait_share: Of all time, 0 to 1.
    """

    bytes_per_step: float
    wait_s_per_step: float
    wait_share: float

    @property
    def text(self) -> str:
        """For a label: "0.34 MB a step, about 2 % of the time waiting"."""
        if not self.bytes_per_step:
            return "nothing is sent while training"
        percent = 100 * self.wait_share
        share = "under 1 %" if percent < 1 else f"about {percent:.0f} %"
        return f"{megabytes(self.bytes_per_step)} a step, {share} of the time waiting"


FREE: Final = Price(0.0, 0.0, 0.0)
"""Never: nothing is sent while ranks train."""


def sent_bytes(model_bytes: float, ranks: int) -> float:
    """What each device sends in one all-reduce of the model: a ring sends each byte 2 (W - 1) / W times."""
    return 2 * (ranks - 1) / ranks * model_bytes if ranks > 1 else 0.0


def price(model_bytes: float, step_time_s: float, link: Link, every: int | None) -> Price:
    """Predicts what a sync interval of `every` steps costs.

    Nothing is taken to overlap with training and all devices to be equally fast; with devices of different speed the
    faster ones also wait for the slowest. DDP (every step) overlaps a part of its exchange, so it waits less than this.

    Args:
        model_bytes: Trainable parameters × `BYTES_PER_PARAMETER`.
        step_time_s: What an optimizer step takes without any exchange; more than 0.
        link: As measured for these devices.
        every: Steps between two rounds; None for never.
    """
    if every is None or link.ranks < 2:
        return FREE
    wait_s = link.all_reduce_s(model_bytes) / every
    return Price(sent_bytes(model_bytes, link.ranks) / every, wait_s, wait_s / (step_time_s + wait_s))


def achieved(step_time_s: float, sync_wait_s: float, sync_bytes: float) -> Price:
    """The same, from what a run's steps reported: means of `step_time_s`, `sync_wait_s` and `sync_bytes`.

    `step_time_s` holds the waiting already.
    """
    return Price(sync_bytes, sync_wait_s, sync_wait_s / step_time_s if step_time_s > 0 else 0.0)
