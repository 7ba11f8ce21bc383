"""`NodesStatus`: which machines are there before a run on several of them starts, and why others are not. Pure.

The command that waits prints it as a JSON line whenever it changes (``--json``); the window draws it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from core.records import RecordError, Text, read_record

EVENT: Final = "nodes"
ERROR_EVENT: Final = "error"
NodeState = Literal["host", "joined", "refused", "left"]
Phase = Literal["waiting", "starting", "training"]


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One machine.

    Attributes:
        name: What it calls itself; empty where it has not told.
        address: From which it has checked in.
        state: ``host``: this machine, with the run's host. ``left``: it waited, and is gone.
        devices: What it trains on.
        error: Title, cause and next step of why it cannot take part.
    """

    name: Text
    address: Text
    state: NodeState
    devices: tuple[Text, ...] = ()
    error: dict[Text, Text] | None = None

    @property
    def is_here(self) -> bool:
        return self.state in ("host", "joined")


@dataclass(frozen=True, slots=True)
class NodesStatus:
    """All machines of a run, as the one with the run's host sees them.

    Attributes:
        least, most: With how many the run trains.
        nodes: This machine first.
        phase: ``training``: the run has its folder.
        folder: The folder in which the command is to be started on each of them.
        line: That command.
        key_file: The file that they need a copy of.
        run_dir: The run's folder; empty before it has one.
    """

    least: int
    most: int
    nodes: tuple[NodeStatus, ...] = ()
    phase: Phase = "waiting"
    folder: Text = ""
    line: tuple[Text, ...] = ()
    key_file: Text = ""
    run_dir: Text = ""

    @property
    def here(self) -> int:
        return sum(node.is_here for node in self.nodes)

    @property
    def wanted(self) -> str:
        return str(self.most) if self.least == self.most else f"{self.least} to {self.most}"

    @property
    def text(self) -> str:
        """How many are there, and why some are not, in sentences."""
        refused = [node for node in self.nodes if node.state == "refused" and node.error]
        why = " ".join(f"{node.address} was refused: {(node.error or {}).get('cause', '')}" for node in refused)
        return f"{self.here} of {self.wanted} nodes are here. {why}".rstrip()

    def to_event(self) -> dict[str, Any]:
        return {"event": EVENT, **dataclasses.asdict(self)}

    @classmethod
    def from_event(cls, values: Mapping[str, Any]) -> NodesStatus | None:
        """What `to_event` has made; None where it is another line."""
        if values.get("event") != EVENT:
            return None
        try:
            return read_record(cls, {name: value for name, value in values.items() if name != "event"})
        except RecordError:
            return None
