"""Link between devices: the speed of exchanging tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final

from core.launch.plan import link_backend, plan_link_test
from core.machine.devices import Device
from core.machine.platform import Platform
from core.measure.ranks import MeasuringRanks
from core.records import Limits, Text, Whole

# Of measuring sums; with starting Python, importing torch and passes of FSDP about eight in all.
SECONDS: Final = 3.0
LIMIT_S: Final = 60.0

Rate = Annotated[float, Limits(1e-6, 1e12)]


@dataclass(frozen=True, slots=True)
class Link:
    """Measured speed of an all-reduce over some devices.

    Attributes:
        mb_per_s: Millions of bytes of tensor a second, in the long run.
        latency_s: Seconds of an all-reduce of next to nothing.
        ranks: Devices that took part.
        shared_mb_per_s: Through shared memory, as DDP sums gradients between CPU devices; None where that is not
            possible.
        sharded_mb_per_s, sharded_latency_s: In passes of PyTorch's FSDP, with its copies; None where they were not
            timed.
    """

    mb_per_s: Rate
    latency_s: Annotated[float, Limits(0, 1e6)]
    ranks: Whole
    backend: Text
    shared_mb_per_s: Rate | None = None
    sharded_mb_per_s: Rate | None = None
    sharded_latency_s: Annotated[float, Limits(0, 1e6)] | None = None


def measure_link(
    devices: Sequence[Device],
    platform: Platform,
    *,
    seconds: float = SECONDS,
    limit_s: float = LIMIT_S,
    cancelled: Callable[[], bool] = lambda: False,
) -> Link:
    """Sum tensors over two or more devices for some seconds. Blocks; may be called from any thread.

    Args:
        devices: Two or more.
        platform: This machine.
        seconds: How long to measure.
        limit_s: After that the ranks are ended.
        cancelled: Asked now and then; True ends the measurement.

    Raises:
        ConfigError, PreflightError: See `core.launch.plan.link_backend`.
        MeasurementError: It failed, or took too long.
        CancelledError: `cancelled` said so.
    """
    backend = link_backend(devices, platform)
    plan = partial(plan_link_test, devices, platform)
    with MeasuringRanks(plan, platform, cancelled) as ranks:
        found = ranks.ask({"kind": "link", "backend": backend, "seconds": seconds}, limit_s)
    return found.read(Link, "The link between the devices", limit_s)[0]
