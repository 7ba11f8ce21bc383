"""`rankdeck train --distributed FILE`: a `DistributedConfig` from a file, as if it were given in flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.config.config_file import read_config
from core.config.distributed import DistributedConfig
from core.config.launcher_variables import TITLES
from core.errors import UsageError

# Fields of the file that are settings of a run.
_SETTINGS: Final = {
    "timeout_s": "collective_timeout_s",
    "find_unused_parameters": "find_unused_parameters",
    "broadcast_buffers": "broadcast_buffers",
    "gradient_as_bucket_view": "gradient_as_bucket_view",
}
_OF_LAUNCHER: Final = ("world_size", "num_nodes", "devices_per_node", "launch_method")


def flags_of(path: Path, place: DistributedConfig | None) -> dict[str, Any]:
    """What a file says, by the names of flags; only what stands in it.

    Args:
        path: A .toml, .yaml or .json file of `DistributedConfig`.
        place: What a launcher says of this process; None where none has started it.

    Raises:
        ConfigError: The file cannot be read, or its fields contradict each other.
        UsageError: It contradicts the launcher; with both values.
    """
    values = read_config(path)
    value = DistributedConfig.from_mapping(values).validate()
    if place is not None:
        for name in _OF_LAUNCHER:
            there, here = getattr(value, name), getattr(place, name)
            if name in values and there != here:
                raise _contradiction(path, name, there, f"{TITLES[place.launch_method]} says {here}")
    elif value.launch_method not in ("spawn", "torchrun" if value.num_nodes > 1 else "spawn"):
        raise _contradiction(path, "launch_method", value.launch_method, "no launcher has started this process")
    flags = {flag: getattr(value, name) for name, flag in _SETTINGS.items() if name in values}
    if place is not None:
        return flags
    if value.num_nodes > 1:
        endpoint = f"{value.master_addr}:{value.master_port}"
        return {**flags, "nodes": str(value.num_nodes), "nic": value.nic or None, "rdzv_endpoint": endpoint}
    return {**flags, "world_size": str(value.world_size)} if "world_size" in values else flags


def laid_under(flags: Mapping[str, Any], given: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What a file adds to the flags that were given. The network interface may be another one on this machine.

    Raises:
        UsageError: A flag says something else; with both values.
    """
    added: dict[str, Any] = {}
    for name, value in flags.items():
        flag = given.get(name)
        if flag is None or name == "nic":
            added[name] = value if flag is None else flag
        elif not _is_same(flag, value):
            raise UsageError(
                f"--{name.replace('_', '-')} is {flag}, but {path} says {value}.",
                "Leave the flag out, or change the file.",
                title="Flags and file contradict each other",
            )
    return added


def _is_same(flag: object, value: object) -> bool:
    try:
        return float(str(flag)) == float(str(value))
    except ValueError:
        return str(flag) == str(value)


def _contradiction(path: Path, name: str, value: object, here: str) -> UsageError:
    return UsageError(
        f"{path} says {name} = {value}, but {here}.",
        "Correct the file, or start the processes as it says.",
        title="Launcher and file contradict each other",
    )
