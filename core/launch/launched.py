"""The device that a launcher has given a process, and contradictions to it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from core.config.distributed import DistributedConfig
from core.config.launcher_variables import TITLES
from core.config.layers import DeviceCount
from core.errors import ConfigError, UsageError
from core.machine.devices.cpu import cpu_slots
from core.machine.devices.device import Device
from core.machine.devices.resolve import resolve_devices


def check_several_machines(place: DistributedConfig) -> None:
    """Refuse processes on several machines whose launcher does not say which is where; raises `UsageError`."""
    if place.num_nodes > 1 and place.launch_method == "mpirun":
        raise UsageError(
            f"mpirun started {place.world_size} processes, {place.devices_per_node} of them on this machine.",
            "On several machines, start them with torchrun or srun.",
            title="The processes are on several machines",
        )


def given_device(
    place: DistributedConfig, asked: Sequence[str], count: DeviceCount | None, usable: Sequence[Device]
) -> Device:
    """Return the device of this process.

    Args:
        place: Its place, from the launcher.
        asked: `RunConfig.devices`; on several machines those of each.
        count: The number of devices that flags ask for, on all machines; None if they name none.
        usable: This machine's devices that can train, as this process sees them.

    Raises:
        ConfigError: Flags ask for other devices than the launcher gives, or it gives none; with both values.
    """
    gpus = [device for device in usable if device.kind == "cuda" and not device.hidden_by]
    if count is not None and count.number is not None:
        wanted = count.number if count.number > 0 else len(gpus) or place.world_size
        if wanted != place.world_size:
            asks = count.flag or f"--world-size {count.number}"
            raise _contradiction(place, f"{asks} asks for {_counted(wanted, 'device')}")
    if tuple(asked) == ("auto",) or (count is not None and count.number is not None):
        return _by_rank(place, gpus) if gpus else _slot(place.local_rank)
    named = resolve_devices(tuple(asked), usable)
    if len(named) != place.devices_per_node:
        raise _contradiction(place, f"--devices {','.join(asked)} names {_counted(len(named), 'device')}")
    for rank, device in enumerate(named):
        own = _by_rank(place.replace(local_rank=rank), gpus) if device.kind == "cuda" else _slot(rank)
        if device != own:
            raise ConfigError(
                "devices",
                f"--devices {','.join(asked)} gives rank {rank} the device {_name(device)}, but LOCAL_RANK={rank} of "
                f"{TITLES[place.launch_method]} gives it {_name(own)}.",
                "Leave out --devices, or choose GPUs with CUDA_VISIBLE_DEVICES before the launcher starts.",
                title="Devices and launcher contradict each other",
            )
    return named[place.local_rank]


def check_devices(place: DistributedConfig, devices: Sequence[Device], nodes: Sequence[int]) -> None:
    """Refuse processes of one machine that have the same device.

    Args:
        place: The place of one of them.
        devices: Their devices, by rank.
        nodes: Their machines, by rank.

    Raises:
        ConfigError: Names the ranks and the device.
    """
    seen: dict[tuple[int, Device], int] = {}
    for rank, key in enumerate(zip(nodes, devices, strict=True)):
        other = seen.setdefault(key, rank)
        if other != rank:
            raise ConfigError(
                "devices",
                f"{TITLES[place.launch_method]} gave ranks {other} and {rank} the same device, {_name(key[1])}.",
                "Start one process for each GPU, or train on CPU devices.",
                option=f"--devices cpux{place.devices_per_node}",
                title="Two processes have one device",
            )


def _by_rank(place: DistributedConfig, gpus: Sequence[Device]) -> Device:
    if len(gpus) == 1 and place.devices_per_node > 1:
        # A launcher that shows each process its own (srun --gpus-per-task).
        return gpus[0]
    if place.local_rank < len(gpus):
        return gpus[place.local_rank]
    raise _contradiction(place, f"this machine has {_counted(len(gpus), 'usable GPU')}")


def _slot(number: int) -> Device:
    return cpu_slots(number + 1)[number]


def _name(device: Device) -> str:
    return f"cuda:{device.index} ({device.uuid})" if device.kind == "cuda" else device.uuid


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _contradiction(place: DistributedConfig, what: str) -> ConfigError:
    here = f", {place.devices_per_node} of them on this machine" if place.num_nodes > 1 else ""
    return ConfigError(
        "devices",
        f"{what[0].upper()}{what[1:]}, but {TITLES[place.launch_method]} started "
        f"{place.world_size} process{'' if place.world_size == 1 else 'es'}{here}.",
        "Start one process for each device.",
        title="Devices and launcher contradict each other",
    )
