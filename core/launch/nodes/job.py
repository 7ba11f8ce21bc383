"""`NodeJob`: a run on several machines, as `rankdeck train --nodes` asks for it on one of them. Pure.

The number of machines is the run's, and kept in its `run.toml`. Where they meet and which interface is used are of this
machine and this start, as the run's folder is: flags and a config file name them, `run.toml` does not.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from core.config.layers import MEETING_KEYS
from core.config.node_count import NodeCount
from core.config.numbers import NumberError, read_number
from core.errors import ConfigError, UsageError
from core.parsing import ParseError, parse_json
from core.processes.identity import ProcessId
from core.records import Limits, RecordError, read_record

ENV_NODE: Final = "RANKDECK_NODE"  # A `NodeJob` as JSON, for the workers that an agent starts.
AUTO_NIC: Final = "auto"  # the interface through which this machine reaches the one with the run's host
WAIT_S: Final = 600.0  # for the other machines, at the start
DEFAULT_PORT: Final = 29_400  # torchrun's own for a rendezvous
PORTS: Final = 5  # that one and the four after it
_LAST_PORT: Final = 65_536 - PORTS
_ENDPOINT: Final = re.compile(r"(?P<host>[\w.-]+)(?::(?P<port>\d{1,5}))?")
_LONGEST_S: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class NodeJob:
    """One machine's part in a run of several.

    Attributes:
        count: With how many machines the run trains.
        host: The machine with the run's host, as the others reach it.
        port: The first of the five ports that are used there (see the properties).
        nic: The network interface of this machine, or `AUTO_NIC`.
        wait_s: How long to wait for the others at the start.
        address: This machine's address on its interface.
        is_host: The run's host is on this machine.
        result: A file in which a worker leaves the command's exit code.
        name: What this machine is called.
        session: Names this command, whose run all its workers continue.
        command: The process of `rankdeck train --nodes` on this machine.
    """

    count: NodeCount
    host: str
    port: Annotated[int, Limits(1, _LAST_PORT)] = DEFAULT_PORT
    nic: str = ""
    wait_s: float = WAIT_S
    address: str = ""
    is_host: bool = False
    result: str = ""
    name: str = ""
    session: str = ""
    command: ProcessId | None = None

    @classmethod
    def from_values(cls, nodes: str | None, values: Mapping[str, Any]) -> NodeJob | None:
        """What flags or a config file ask for; None: this machine alone.

        Args:
            nodes: The run's setting, a `NodeCount` as text.
            values: Of `MEETING_KEYS`; None or empty where nothing is given.

        Raises:
            ConfigError: One of them is missing, cannot be read, or contradicts another; its field is its key.
        """
        count = None if nodes is None else NodeCount.read(nodes)
        if count is None or not count.is_several:
            return None
        texts = {key: str(values[key]).strip() for key in MEETING_KEYS if values.get(key) not in (None, "")}
        host, port = _endpoint(texts)
        return cls(count, host, port, texts.get("nic", ""), _seconds(texts.get("nodes_wait_s", str(WAIT_S))))

    @property
    def endpoint(self) -> str:
        """Where torchrun's agents meet; torch opens this port itself."""
        return f"{self.host}:{self.port}"

    @property
    def desk_port(self) -> int:
        """Where nodes check in before agents start, and when they come back."""
        return self.port + 1

    @property
    def meeting_port(self) -> int:
        """Where workers of other nodes meet the run's host."""
        return self.port + 2

    @property
    def listen_port(self) -> int:
        """Where ranks of other nodes report."""
        return self.port + 3

    @property
    def store_port(self) -> int:
        """Where ranks exchange the addresses at which they exchange tensors."""
        return self.port + 4

    def replace(self, **changes: Any) -> NodeJob:
        return dataclasses.replace(self, **changes)

    def to_env(self) -> dict[str, str]:
        return {ENV_NODE: json.dumps(dataclasses.asdict(self))}

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> NodeJob | None:
        """The job of the worker that has this environment; None where `rankdeck train --nodes` has not started it.

        Raises:
            UsageError: The variable cannot be read.
        """
        text = environment.get(ENV_NODE)
        if not text:
            return None
        try:
            return read_record(cls, parse_json(text), strict=True)
        except (ParseError, RecordError, ConfigError) as error:
            raise UsageError(f"{ENV_NODE} cannot be read: {error}.", "Use `rankdeck train --nodes`.") from None


def _endpoint(texts: Mapping[str, str]) -> tuple[str, int]:
    endpoint, address, port = (texts.get(name, "") for name in ("rdzv_endpoint", "master_addr", "master_port"))
    if endpoint and (address or port):
        raise ConfigError(
            "rdzv_endpoint",
            f"--rdzv-endpoint {endpoint} and --master-addr say the same thing.",
            "Leave one of them out.",
        )
    text = endpoint or (f"{address}:{port}" if address and port else address)
    if not text:
        raise ConfigError(
            "rdzv_endpoint",
            "A run on several machines needs the one that will have the run's host.",
            "Name it, by the same name or address on all machines.",
            option="--rdzv-endpoint HOST; --nodes 1 trains on this machine alone",
        )
    found = _ENDPOINT.fullmatch(text)
    number = 0 if found is None else int(found["port"] or DEFAULT_PORT)
    if found is None or not 1 <= number <= _LAST_PORT:
        raise ConfigError(
            "rdzv_endpoint",
            f"{text[:80]!r} is not an address of a machine.",
            f"Write HOST or HOST:PORT, with a port from 1 to {_LAST_PORT}.",
            option="--rdzv-endpoint node1:29400",
        )
    return found["host"], number


def _seconds(text: str) -> float:
    try:
        value = float(read_number(text, "s"))
    except NumberError:
        value = math.nan
    if not 0 < value <= _LONGEST_S:  # false for NaN too
        raise ConfigError(
            "nodes_wait_s",
            f"{text!r} is not a number of seconds to wait.",
            "Give seconds.",
            option="--nodes-wait-s 600",
        )
    return value
