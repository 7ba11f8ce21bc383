"""`NodesRequest`: a run on several machines, as it is asked for on one of them. Pure.

The number of machines is the run's, and kept in its `run.toml`. Where they meet and which interface is used are of this
machine and this start, as the run's folder is: flags, a config file and the window name them, `run.toml` does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.config.layers import MEETING_KEYS
from core.config.node_count import NodeCount
from core.config.numbers import NumberError, read_number
from core.errors import ConfigError
from core.launch.nodes.job import DEFAULT_PORT, PORTS, NodeJob

WAIT_S: Final = 600.0  # for the other machines, at the start
AUTO_NIC: Final = "auto"  # the interface through which this machine reaches the one with the run's host
_ENDPOINT: Final = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\])(?::(?P<port>\d{1,5}))?")
_LONGEST_S: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class NodesRequest:
    """With how many machines, and where they meet.

    Attributes:
        count: With how many machines the run trains.
        host: The machine with the run's host, as the others reach it.
        port: The first of the five ports that are used there.
        nic: The network interface of this machine, or `AUTO_NIC`.
        wait_s: How long to wait for the others at the start.

    Raises:
        ConfigError: A value cannot be used; its field is that of `MEETING_KEYS`.
    """

    count: NodeCount
    host: str
    port: int = DEFAULT_PORT
    nic: str = ""
    wait_s: float = WAIT_S

    def __post_init__(self) -> None:
        if not self.count.is_several:
            raise ConfigError("nodes", "One machine alone needs no others.", "Leave it out.", option="without --nodes")
        if _ENDPOINT.fullmatch(self.host) is None or not 1 <= self.port <= 65_536 - PORTS:
            raise _no_address(f"{self.host}:{self.port}")
        if not (math.isfinite(self.wait_s) and 0 < self.wait_s <= _LONGEST_S):
            raise _no_wait(self.wait_s)

    @classmethod
    def from_values(cls, nodes: str | None, values: Mapping[str, Any]) -> NodesRequest | None:
        """What flags, a config file or a form ask for; None: this machine alone.

        Args:
            nodes: The run's setting, a `NodeCount` as text.
            values: Of `MEETING_KEYS`; None or empty where nothing is given.

        Raises:
            ConfigError: One of them is missing, cannot be read, or contradicts another.
        """
        count = None if nodes is None else NodeCount.read(nodes)
        if count is None or not count.is_several:
            return None
        texts = {key: str(values[key]).strip() for key in MEETING_KEYS if values.get(key) not in (None, "")}
        host, port = _endpoint(texts)
        wait_s = _seconds(texts.get("nodes_wait_s", str(WAIT_S)))
        return cls(count, host, port, texts.get("nic", ""), wait_s)

    @property
    def endpoint(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def flags(self) -> list[str]:
        """The flags of `rankdeck train` and `resume` that ask for it."""
        nic = ["--nic", self.nic] if self.nic else []
        wait = [] if self.wait_s == WAIT_S else ["--nodes-wait-s", f"{self.wait_s:g}"]
        return ["--nodes", self.count.text, *nic, "--rdzv-endpoint", self.endpoint, *wait]

    def job(self, **here: Any) -> NodeJob:
        """One machine's part in it; `here`: the fields of `NodeJob` that are of that machine."""
        count, host = self.count, self.host.strip("[]")
        return NodeJob(count.least, count.most, host, self.port, fewest_nodes=count.fewest, **here)


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
    if found is None:
        raise _no_address(text)
    return found["host"], int(found["port"] or DEFAULT_PORT)


def _seconds(text: str) -> float:
    try:
        return float(read_number(text, "s"))
    except NumberError:
        raise _no_wait(text) from None


def _no_address(text: str) -> ConfigError:
    return ConfigError(
        "rdzv_endpoint",
        f"{text[:80]!r} is not an address of a machine.",
        f"Write HOST or HOST:PORT, with a port from 1 to {65_536 - PORTS}.",
        option="--rdzv-endpoint node1:29400",
    )


def _no_wait(value: object) -> ConfigError:
    return ConfigError(
        "nodes_wait_s", f"{value!r} is not a number of seconds to wait.", "Give seconds.", option="--nodes-wait-s 600"
    )
