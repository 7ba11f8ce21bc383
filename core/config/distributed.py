"""`DistributedConfig`: everything that makes several processes one run, as a value.

The environment of ranks is made from it (`to_env`), a launcher that has started this process is recognised by it
(`from_env`), `rankdeck export` writes launch files from it, and `rankdeck train --distributed FILE` reads one.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import tomli_w

from core.config.config_file import read_config
from core.config.launcher_variables import TITLES, launched_place
from core.config.run_config import RunConfig
from core.errors import ConfigError, UsageError
from core.parsing import ParseError, parse_json
from core.records import Limits, RecordError, read_record

# A `DistributedConfig` as JSON, for what torchrun's variables have no name for.
ENV_DISTRIBUTED: Final = "RANKDECK_DISTRIBUTED"

# Who starts the ranks. ``spawn``: the run host. ``env``: a person, process by process.
LaunchMethod: TypeAlias = Literal["spawn", "torchrun", "srun", "mpirun", "mpiexec", "env"]

BACKENDS: Final = ("", "gloo", "nccl")
_LOOPBACK: Final = "127.0.0.1"
_NIC: Final = re.compile(r"[\w.:@ -]{1,64}")
_WRITERS: Final[Mapping[str, Callable[[dict[str, Any]], str]]] = {
    ".toml": tomli_w.dumps,
    ".yaml": lambda values: _yaml(values),
    ".yml": lambda values: _yaml(values),
    ".json": lambda values: json.dumps(values, indent=2) + "\n",
}
# Fields of the file that are settings of a run.
_SETTINGS: Final = {
    "timeout_s": "collective_timeout_s",
    "find_unused_parameters": "find_unused_parameters",
    "broadcast_buffers": "broadcast_buffers",
    "gradient_as_bucket_view": "gradient_as_bucket_view",
}
_OF_LAUNCHER: Final = ("world_size", "num_nodes", "devices_per_node", "launch_method")


@dataclass(frozen=True, slots=True)
class DistributedConfig:
    """One process's place among those of a run, and what connects them.

    Attributes:
        rank, local_rank: This process, among all and on its node.
        num_nodes, node_rank: Machines, and which of them this is.
        backend: ``gloo``, ``nccl``, or empty where ranks exchange no tensors.
        master_addr, master_port: Where programs made for torchrun meet. Port 0: none; ranks of our own recipes meet
            in a file (docs/decisions/0006).
        nic: The network interface that connections use; empty: loopback.
        timeout_s: How long a collective may take.
        job: The launcher's own name for what it has started; empty where it has none.
        restart_count, max_restarts: How often the launcher has started these processes again, and will at most.
    """

    world_size: Annotated[int, Limits(1, 65_536)] = 1
    rank: Annotated[int, Limits(0, 65_535)] = 0
    local_rank: Annotated[int, Limits(0, 65_535)] = 0
    num_nodes: Annotated[int, Limits(1, 65_536)] = 1
    node_rank: Annotated[int, Limits(0, 65_535)] = 0
    devices_per_node: Annotated[int, Limits(1, 65_536)] = 1
    backend: str = ""
    master_addr: Annotated[str, Limits(1, 255)] = _LOOPBACK
    master_port: Annotated[int, Limits(0, 65_535)] = 0
    nic: str = ""
    timeout_s: Annotated[float, Limits(1.0, 86_400.0)] = 300.0
    find_unused_parameters: bool = False
    broadcast_buffers: bool = True
    gradient_as_bucket_view: bool = True
    launch_method: LaunchMethod = "spawn"
    job: str = ""
    restart_count: Annotated[int, Limits(0)] = 0
    max_restarts: Annotated[int, Limits(0)] = 0

    @property
    def is_launched(self) -> bool:
        return self.launch_method != "spawn"

    def replace(self, **changes: Any) -> DistributedConfig:
        return dataclasses.replace(self, **changes)

    def with_settings(self, config: RunConfig) -> DistributedConfig:
        return self.replace(
            timeout_s=config.collective_timeout_s,
            find_unused_parameters=config.find_unused_parameters,
            broadcast_buffers=config.broadcast_buffers,
            gradient_as_bucket_view=config.gradient_as_bucket_view,
        )

    def validate(self) -> DistributedConfig:
        """This value, if its fields agree with each other; raises `ConfigError`."""
        self.from_mapping(self.to_dict())  # each field by itself
        # torchrun's agents may each have their own number of processes, and so may machines whose ranks Rankdeck starts
        # itself (`core.measure`); one of them is all that a process knows.
        unequal = self.launch_method in ("torchrun", "spawn") and self.num_nodes > 1
        least = self.devices_per_node + self.num_nodes - 1
        if self.world_size < least if unequal else self.num_nodes * self.devices_per_node != self.world_size:
            there = f"num_nodes is {self.num_nodes} and devices_per_node {self.devices_per_node}"
            raise _invalid("world_size", f"world_size is {self.world_size}, but {there}.")
        if self.rank >= self.world_size:
            raise _invalid("rank", f"rank is {self.rank}, but world_size is {self.world_size}, counted from 0.")
        if self.local_rank >= self.devices_per_node:
            raise _invalid(
                "local_rank", f"local_rank is {self.local_rank}, but devices_per_node is {self.devices_per_node}."
            )
        if self.node_rank >= self.num_nodes:
            raise _invalid("node_rank", f"node_rank is {self.node_rank}, but num_nodes is {self.num_nodes}.")
        if self.backend not in BACKENDS:
            raise _invalid("backend", f"backend is {self.backend!r}, and can be gloo, nccl or empty.")
        if self.nic and not _NIC.fullmatch(self.nic):
            raise _invalid("nic", f"nic is {self.nic!r}, which cannot be a network interface.")
        if self.num_nodes > 1 and self.master_port == 0:
            raise _invalid("master_port", f"master_port is 0, but {self.num_nodes} nodes need one to meet at.")
        return self

    @property
    def ddp_arguments(self) -> dict[str, bool]:
        return {
            "find_unused_parameters": self.find_unused_parameters,
            "broadcast_buffers": self.broadcast_buffers,
            "gradient_as_bucket_view": self.gradient_as_bucket_view,
        }

    # environment

    def torchrun_variables(self) -> dict[str, str]:
        port = {"MASTER_PORT": str(self.master_port)} if self.master_port else {}
        return {
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.devices_per_node),
            "MASTER_ADDR": self.master_addr,
            **port,
        }

    def to_env(self) -> dict[str, str]:
        """The variables from which `from_env` makes the same value again."""
        return {**self.torchrun_variables(), ENV_DISTRIBUTED: json.dumps(self.to_dict())}

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> DistributedConfig:
        """The place of the process that has this environment; alone, and started by no launcher, without one.

        Raises:
            ConfigError: A launcher's variable cannot be read, or they contradict each other.
        """
        text = environment.get(ENV_DISTRIBUTED)
        if text is None:
            return cls.from_mapping(launched_place(environment)).validate()
        try:
            values = parse_json(text)
        except ParseError as error:
            raise _invalid(ENV_DISTRIBUTED, f"{ENV_DISTRIBUTED} cannot be read: {error}.") from None
        place = cls.from_mapping(values)
        if place.launch_method == "env":  # one text for all of them; each process says which it is
            for name in ("rank", "local_rank"):
                number = environment.get(name.upper(), "")
                if not number.isdecimal():
                    cause = f"{name.upper()} is {number!r}, and must be this process's number from 0."
                    raise _invalid(name, cause)
                place = place.replace(**{name: int(number)})
        return place.validate()

    # files

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_mapping(cls, values: object) -> DistributedConfig:
        """The value that a file or another program has written; missing fields have their defaults.

        Raises:
            ConfigError: A field is unknown or has a value that it cannot have.
        """
        try:
            return read_record(cls, values, strict=True)
        except RecordError as error:
            raise _invalid(error.place or "distributed", f"{error}.") from None

    def to_text(self, suffix: str) -> str:
        """The value as a file of this suffix: .toml, .yaml or .json."""
        return _WRITERS[suffix.lower()](self.to_dict())


def _yaml(values: dict[str, Any]) -> str:
    import yaml  # here only: a rank imports this module and writes no file

    return str(yaml.safe_dump(values, sort_keys=False))


def _invalid(field: str, cause: str) -> ConfigError:
    return ConfigError(field, cause, "Correct it.", title="Invalid distributed settings")


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
