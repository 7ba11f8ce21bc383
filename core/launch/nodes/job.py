"""`NodeJob`: what `rankdeck train --nodes` asks for on one machine, and its workers are told. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from core.errors import UsageError
from core.parsing import ParseError, parse_json
from core.records import Limits, RecordError, read_record

ENV_NODE: Final = "RANKDECK_NODE"
"""A `NodeJob` as JSON, for the workers that an agent starts."""
DEFAULT_PORT: Final = 29_400
"""torchrun's own for a rendezvous."""
_PORTS: Final = 5
_ENDPOINT: Final = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\])(?::(?P<port>\d{1,5}))?")
_NODES: Final = re.compile(r"(\d{1,5})(?::(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class NodeJob:
    """One machine's part in a run of several.

    Attributes:
        min_nodes, max_nodes: With how many machines the run starts.
        host: The machine that the run's host is on, as the others reach it.
        port: The first of the five ports that are used there (see the properties).
        nic: The network interface of this machine.
        address: This machine's address on it.
        is_host: The run's host is on this machine.
        result: A file in which a worker leaves the command's exit code.
        name: What this machine is called.
        session: Names this command, whose run all its workers continue.
        fewest_nodes: With how many machines it continues when others are lost.
    """

    min_nodes: Annotated[int, Limits(1, 65_536)]
    max_nodes: Annotated[int, Limits(1, 65_536)]
    host: str
    port: Annotated[int, Limits(1, 65_535)]
    nic: str = ""
    address: str = ""
    is_host: bool = False
    result: str = ""
    name: str = ""
    session: str = ""
    fewest_nodes: Annotated[int, Limits(1, 65_536)] = 1

    @property
    def endpoint(self) -> str:
        """Where torchrun's agents meet; torch opens this port itself."""
        return f"{self.host}:{self.port}"

    @property
    def nodes(self) -> str:
        """``--nodes`` as it was asked for."""
        fixed = self.min_nodes == self.max_nodes and self.fewest_nodes == 1
        return str(self.max_nodes) if fixed else f"{self.min_nodes}:{self.max_nodes}"

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
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def to_env(self) -> dict[str, str]:
        """The variable that `from_env` reads."""
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
        except (ParseError, RecordError) as error:
            raise UsageError(f"{ENV_NODE} cannot be read: {error}.", "Use `rankdeck train --nodes`.") from None


def asked_job(nodes: str, endpoint: str | None, address: str | None, port: str | None) -> NodeJob:
    """What the flags ask for.

    Args:
        nodes: ``--nodes``: ``2``, which starts with two and continues with what is left, or ``1:2`` or ``2:2``, which
            never trains with fewer than the first number.
        endpoint: ``--rdzv-endpoint``: ``HOST:PORT`` or ``HOST``.
        address: ``--master-addr``, which says the same.
        port: ``--master-port``.

    Raises:
        UsageError: One of them is missing, cannot be read, or contradicts another.
    """
    found = _NODES.fullmatch(nodes.strip())
    least, most = (0, 0) if found is None else (int(found[1]), int(found[2] or found[1]))
    if not 1 <= least <= most or most < 2:
        raise UsageError(
            f"--nodes is {nodes!r}, which is not a number of machines.",
            "Give a number from 2, or the least and the most: --nodes 1:2",
        )
    if endpoint and (address or port):
        raise UsageError(f"--rdzv-endpoint {endpoint} and --master-addr say the same thing.", "Leave one of them out.")
    text = endpoint or (f"{address}:{port}" if address and port else address)
    if not text:
        raise UsageError(
            "--nodes needs the machine that will have the run's host.",
            "Name it, by the same name or address on all machines: --rdzv-endpoint HOST",
        )
    where = _ENDPOINT.fullmatch(text.strip())
    number = 0 if where is None else int(where["port"] or DEFAULT_PORT)
    if where is None or not 1 <= number <= 65_536 - _PORTS:
        raise UsageError(
            f"{text!r} is not an address of a machine.", "Write HOST or HOST:PORT: --rdzv-endpoint node1:29400"
        )
    fewest = 1 if found is None or found[2] is None else least
    return NodeJob(least, most, where["host"].strip("[]"), number, fewest_nodes=fewest)
