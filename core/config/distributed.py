"""`DistributedConfig`: everything that makes several processes one run, as a value.

The environment of ranks is made from it (`to_env`), and a launcher that started this process is recognised by it
(`from_env`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from core.config.launcher_variables import launched_place
from core.errors import ConfigError
from core.parsing import ParseError, parse_json
from core.records import Limits, RecordError, read_record

# A `DistributedConfig` as JSON, for what torchrun's variables have no name for.
ENV_DISTRIBUTED: Final = "RANKDECK_DISTRIBUTED"

# Who starts the ranks. ``spawn``: the run host.
LaunchMethod: TypeAlias = Literal["spawn", "torchrun", "srun", "mpirun"]

_LOOPBACK: Final = "127.0.0.1"


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
    launch_method: LaunchMethod = "spawn"
    job: str = ""
    restart_count: Annotated[int, Limits(0)] = 0
    max_restarts: Annotated[int, Limits(0)] = 0

    @property
    def is_launched(self) -> bool:
        return self.launch_method != "spawn"

    def replace(self, **changes: Any) -> DistributedConfig:
        return dataclasses.replace(self, **changes)

    def validate(self) -> DistributedConfig:
        """Return this value if its fields agree with each other; otherwise raise `ConfigError`."""
        # Machines may have unequal numbers of processes, and a process knows its own machine's only.
        least, several = self.devices_per_node + self.num_nodes - 1, self.num_nodes > 1
        if self.world_size < least if several else self.devices_per_node != self.world_size:
            there = f"num_nodes is {self.num_nodes} and devices_per_node {self.devices_per_node}"
            raise _invalid("world_size", f"world_size is {self.world_size}, but {there}.")
        for name, of in (("rank", "world_size"), ("local_rank", "devices_per_node"), ("node_rank", "num_nodes")):
            number, count = getattr(self, name), getattr(self, of)
            if number >= count:
                raise _invalid(name, f"{name} is {number}, but {of} is {count}, counted from 0.")
        return self

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
        """Return the variables from which `from_env` makes the same value again."""
        return {**self.torchrun_variables(), ENV_DISTRIBUTED: json.dumps(self.to_dict())}

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> DistributedConfig:
        """Return the place of the process with this environment; without a launcher it is alone.

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
        return cls.from_mapping(values).validate()

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_mapping(cls, values: object) -> DistributedConfig:
        """Read a value that another program has written; missing fields have their defaults.

        Raises:
            ConfigError: A field is unknown or has a value that it cannot have.
        """
        try:
            return read_record(cls, values, strict=True)
        except RecordError as error:
            raise _invalid(error.place or "distributed", f"{error}.") from None


def _invalid(field: str, cause: str) -> ConfigError:
    return ConfigError(field, cause, "Correct it.", title="Invalid distributed settings")
