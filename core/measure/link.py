"""Link between devices: the speed of exchanging tensors, measured and kept."""

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
_KEPT_FILE: Final = "links.json"
_FORMAT: Final = "rankdeck-links"

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
    """Sum tensors over two or more devices for some seconds. Blocks; may be called from any thread.

    Args:
        devices: Two or more.
        platform: This machine.
        seconds: How long to measure.
        limit_s: After that the ranks are ended.
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
    """Read the link that `keep_link` kept for exactly these devices and this torch; None if there is none."""
    try:
        return read_record(Link, _kept(folder).get(_key(devices, platform)))
    except RecordError:
        return None


def keep_link(link: Link, devices: Sequence[Device], platform: Platform, folder: Path) -> None:
    """Keep a link in the folder of runs for `known_link`; a folder that cannot be written is ignored."""
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
