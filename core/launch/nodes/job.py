"""`NodeJob`: what `rankdeck train --nodes` asks for on one machine, and its workers are told. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from core.config.node_count import NodeCount
from core.errors import UsageError
from core.parsing import ParseError, parse_json
from core.processes.identity import ProcessId
from core.records import Limits, RecordError, read_record

ENV_NODE: Final = "RANKDECK_NODE"  # A `NodeJob` as JSON, for the workers that an agent starts.
DEFAULT_PORT: Final = 29_400  # torchrun's own for a rendezvous
PORTS: Final = 5  # that one and the four after it


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
        command: The process of `rankdeck train --nodes` on this machine.
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
    command: ProcessId | None = None

    @property
    def endpoint(self) -> str:
        """Where torchrun's agents meet; torch opens this port itself."""
        return f"{self.host}:{self.port}"

    @property
    def nodes(self) -> str:
        return NodeCount(self.min_nodes, self.max_nodes, can_lose=self.fewest_nodes < self.min_nodes).text

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
        except (ParseError, RecordError) as error:
            raise UsageError(f"{ENV_NODE} cannot be read: {error}.", "Use `rankdeck train --nodes`.") from None
