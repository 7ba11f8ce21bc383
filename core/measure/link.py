"""Link between devices: how fast they exchange tensors, measured and kept, and what synchronising over it costs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from core.errors import RankdeckError
from core.files.atomic import write_atomic
from core.formatting import megabytes
from core.held_files import read_utf8
from core.launch.plan import link_backend, plan_link_test
from core.machine.devices import Device
from core.machine.platform import Platform
from core.measure.ranks import MeasuringRanks
from core.parsing import parse_json
from core.recipes.check import error_in
from core.records import Limits, RecordError, Text, Whole, read_record

# Of measuring sums; with starting Python, importing torch and passes of FSDP about eight in all.
SECONDS: Final = 3.0
LIMIT_S: Final = 60.0
# Weights and gradients travel as fp32.
BYTES_PER_PARAMETER: Final = 4
_KEPT_FILE: Final = "links.json"
_FORMAT: Final = "rankdeck-links"

Rate = Annotated[float, Limits(1e-6, 1e12)]


@dataclass(frozen=True, slots=True)
class Link:
    """How fast tensors are summed over some devices, as measured.

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
class SyncCost:
    """The cost of a sync interval, for each device and step.

    Attributes:
        bytes_per_step: Sent, on average over the steps of a round.
        wait_share: Of all time, 0 to 1.
    """

    bytes_per_step: float = 0.0
    wait_share: float = 0.0

    @property
    def text(self) -> str:
        """For a label: "0.34 MB a step, about 2 % of the time waiting"."""
        if not self.bytes_per_step:
            return "nothing is sent while training"
        percent = 100 * self.wait_share
        share = "under 1 %" if percent < 1 else f"about {percent:.0f} %"
        return f"{megabytes(self.bytes_per_step)} a step, {share} of the time waiting"


def sync_cost(model_bytes: float, step_time_s: float, link: Link, every: int | None) -> SyncCost:
    """Predicts the cost of a sync interval.

    Nothing is taken to overlap with training and all devices to be equally fast; with devices of different speed the
    faster ones also wait for the slowest. DDP (every step) overlaps a part of its exchange, so it waits less than this.

    Args:
        model_bytes: Trainable parameters × `BYTES_PER_PARAMETER`.
        step_time_s: What an optimizer step takes without any exchange; more than 0.
        link: As measured for these devices.
        every: Steps between two rounds; None for never.
    """
    if every is None or link.ranks < 2:
        return SyncCost()
    wait_s = link.all_reduce_s(model_bytes) / every
    sent = 2 * (link.ranks - 1) / link.ranks * model_bytes  # a ring sends each byte 2 (W - 1) / W times
    return SyncCost(sent / every, wait_s / (step_time_s + wait_s))


class LinkTestError(RankdeckError):
    """The devices could not be measured."""

    title = "The link between the devices could not be measured"


def measure_link(
    devices: Sequence[Device],
    platform: Platform,
    *,
    seconds: float = SECONDS,
    limit_s: float = LIMIT_S,
    cancelled: Callable[[], bool] = lambda: False,
) -> Link:
    """Sums tensors over the devices for some seconds. Blocks; may be called from any thread.

    Args:
        devices: Two or more.
        platform: This machine.
        seconds: How long to measure.
        limit_s: After that everything started is ended, whatever it is doing.
        cancelled: Asked now and then; True ends the measurement.

    Raises:
        ConfigError, PreflightError: See `core.launch.plan.link_backend`.
        LinkTestError: It failed, or took too long.
        CancelledError: `cancelled` said so.
    """
    backend = link_backend(devices, platform)
    plan = partial(plan_link_test, devices, platform)
    with MeasuringRanks(plan, platform, cancelled) as ranks:
        found = ranks.ask({"kind": "link", "backend": backend, "seconds": seconds}, limit_s)
    doctor = "Check this machine: rankdeck doctor"
    for values in found.values:
        if (error := error_in(values or {}, LinkTestError)) is not None:
            raise error
    for rank, death in found.deaths.items():
        raise LinkTestError(f"The process on {devices[rank].uuid} {death.text}.", doctor)
    if None in found.values:
        raise LinkTestError(
            f"The ranks did not finish within {limit_s:g} s.", "Close other programs and measure again."
        )
    try:
        return read_record(Link, {"ranks": len(devices), "backend": backend, **(found.values[0] or {})})
    except RecordError as error:
        raise LinkTestError(f"The ranks gave no speed ({error}).", doctor) from error


def known_link(devices: Sequence[Device], platform: Platform, folder: Path) -> Link | None:
    """What `keep_link` kept in the folder of runs for exactly these devices and this torch; None if nothing."""
    try:
        return read_record(Link, _kept(folder).get(_key(devices, platform)))
    except RecordError:
        return None


def keep_link(link: Link, devices: Sequence[Device], platform: Platform, folder: Path) -> None:
    """Keeps what was measured for `known_link`; says nothing when the folder cannot be written."""
    links = {**_kept(folder), _key(devices, platform): dataclasses.asdict(link)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / _KEPT_FILE, json.dumps({"format": _FORMAT, "version": 1, "links": links}, indent=2))
    except (OSError, RankdeckError):
        return  # it is measured again when it is needed again


def _key(devices: Sequence[Device], platform: Platform) -> str:
    return " ".join([f"torch-{platform.torch_version}", *sorted(device.uuid for device in devices)])


def _kept(folder: Path) -> dict[str, Any]:
    try:
        document = parse_json(read_utf8(folder / _KEPT_FILE))
    except (OSError, ValueError):
        return {}
    links = document.get("links") if isinstance(document, dict) and document.get("format") == _FORMAT else None
    return links if isinstance(links, dict) else {}
