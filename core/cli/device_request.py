"""A request resolved on this machine; `--world-size`, `--num-gpus` and `--cuda-ids` as its devices."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from core.config.device_names import count_notes, cpu_texts, with_counts
from core.config.mode import Mode
from core.config.run_config import RunConfig
from core.errors import ConfigError, PreflightError
from core.launch.command_line import TrainRequest
from core.launch.mode import recipe_platform, usable_devices
from core.launch.resolved import ResolvedRun, resolve
from core.machine.devices import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.resolve import resolve_devices
from core.machine.devices.visible import CUDA
from core.machine.platform import Platform, this_platform

DDP_SPAWN: Final = "AIOS_DDP_SPAWN"


def resolve_request(
    request: TrainRequest, available: Sequence[Device] | None = None
) -> tuple[ResolvedRun, tuple[str, ...]]:
    """Resolve a request on this machine; also return notes on how the flags were interpreted.

    Raises:
        ConfigError, PreflightError: As `resolve`, `with_devices` and `with_ddp_spawn`.
    """
    platform = this_platform()
    with DeviceMonitor() as monitor:
        available = monitor.devices() if available is None else available
        cpus = monitor.cpu_slots()
    config, notes = with_devices(request, available, cpus, platform)
    request, more = with_ddp_spawn(replace(request, config=config), available, os.environ)
    run = resolve(request.config, request.recipe, available, platform, named=request.named)
    return run, (*notes, *more)


def with_devices(
    request: TrainRequest, available: Sequence[Device], cpus: Sequence[Device], platform: Platform
) -> tuple[RunConfig, tuple[str, ...]]:
    """Name a request's devices; also return notes on how the flags were interpreted.

    Raises:
        ConfigError: There are too few GPUs.
        PreflightError: GPUs are asked for with ``--strict``, and there is none.
    """
    config, asked = request.config, request.count
    if asked is None:
        return config.replace(devices=with_counts(config.devices)), count_notes(config.devices)
    if asked.number is None:
        if any(device.kind == "cuda" and not device.hidden_by for device in available):
            return config, ()
        return _on_cpu(config, len(config.devices), asked.flag)
    usable, notes = usable_devices(available, recipe_platform(request.recipe, platform))
    gpus = [device for device in usable if device.kind == "cuda"]
    count = asked.number if asked.number > 0 else len(gpus) or len(cpus)
    if gpus:
        return first_devices(config, count, gpus), notes
    changed, more = _on_cpu(config, count, asked.flag)
    return changed, (*notes, *more)


def first_devices(config: RunConfig, count: int, gpus: Sequence[Device]) -> RunConfig:
    """Take the first `count` GPUs; raises `ConfigError`."""
    if len(gpus) < count:
        where = f"{CUDA}={os.environ[CUDA]} leaves" if CUDA in os.environ else "this machine has"
        raise ConfigError(
            "world_size",
            f"{count} devices were requested, but {where} {len(gpus)} GPU{'s' if len(gpus) != 1 else ''}.",
            f"Request at most {len(gpus)}, or CPU devices: --devices cpux{count}.",
        )
    return config.replace(devices=tuple(device.uuid for device in gpus[:count]))


def with_ddp_spawn(
    request: TrainRequest, available: Sequence[Device], environment: Mapping[str, str]
) -> tuple[TrainRequest, tuple[str, ...]]:
    """Apply `AIOS_DDP_SPAWN=1`: several devices train in mode ddp unless a mode was chosen. Raises `ConfigError`."""
    config = request.config
    is_set = environment.get(DDP_SPAWN, "").strip().lower() in ("1", "true", "yes", "on")
    if not is_set or config.mode != Mode.AUTO or config.sync_every is not None or request.recipe.self_contained:
        return request, ()
    if len(resolve_devices(config.devices, available)) < 2:
        return request, ()
    note = f"{DDP_SPAWN}={environment[DDP_SPAWN]} is set and no mode was chosen: the devices train in mode ddp."
    return replace(request, config=config.replace(mode=Mode.DDP)), (note,)


def _on_cpu(config: RunConfig, count: int, asked: str) -> tuple[RunConfig, tuple[str, ...]]:
    devices = f"{count} CPU devices" if count > 1 else "one CPU device"
    if asked and config.strict:
        raise PreflightError(
            f"{asked} requests GPUs, but this machine has no usable GPU.",
            "Leave out --strict to train on CPU devices instead.",
        )
    notes = (f"{asked} requests GPUs, but this machine has no usable GPU: the run trains on {devices} instead.",)
    return config.replace(devices=cpu_texts(range(count))), notes if asked else ()
