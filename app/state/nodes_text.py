"""Texts of a run on several machines: its group in New run, and the machines while it waits for them."""

from __future__ import annotations

import shlex
from typing import Final

from core.config.node_count import NodeCount
from core.errors import sentences
from core.formatting import count
from core.launch.nodes.status import NodesStatus, NodeStatus

NOT_ON_WINDOWS = (
    "A Windows machine cannot take part: PyTorch's builds for Windows lack libuv, which its store for several machines "
    "needs. To train on another machine, add it under Other machines, and tick its devices above."
)
NOT_A_SCRIPT = "A script of your own is started on each machine with torchrun."
NOT_ELSEWHERE = "The devices above are on another machine. Tick devices of this computer to train on several."
NO_INTERFACE = "This computer has no network interface with an address."
ABOUT = (
    "The run's host is on this computer. The other machines need the same Rankdeck and PyTorch at the same paths, and "
    "the folder of runs must be one that they share. Their devices add to the batch."
)


# What a machine's badge says, and its tone.
STATES: Final = {
    "host": ("this computer", "success"),
    "joined": ("joined", "success"),
    "refused": ("refused", "error"),
    "left": ("left", "warning"),
}


def node_text(node: NodeStatus) -> str:
    """A machine's devices, or why it cannot take part and what to do."""
    if node.state == "refused" and node.error:
        return sentences(node.error.get("cause"), node.error.get("window_step") or node.error.get("next_step"))
    if node.state == "left":
        return "It waited here and has ended. Start its command again."
    return ", ".join(node.devices)


def waiting_title(status: NodesStatus) -> str:
    """How many are there, of those that can take part: "1 of 2 machines"."""
    return f"{status.here} of {status.most} machines"


def waiting_text(status: NodesStatus) -> str:
    if status.phase != "waiting":
        return "All are here. Starting their devices…"
    missing = status.least - status.here
    if missing > 0:
        return f"Waiting for {count(missing)} more {'machine' if missing == 1 else 'machines'}."
    return "Enough are here. The run starts in a moment, with those that come meanwhile."


def line_text(status: NodesStatus) -> str:
    """The command for each other machine, to be pasted into a shell."""
    return f"cd {shlex.quote(status.folder)} && {shlex.join(status.line)}"


def key_text(status: NodesStatus) -> str:
    return f"Each of them needs a copy of {status.key_file} of this computer, at the same path in its own home folder."


def head_text(nodes: str, nic: str) -> str:
    """What a folded group says: "2 machines · eth0"; empty for this machine alone."""
    if not nodes:
        return ""
    number = NodeCount.read(nodes)
    wanted = str(number.most) if number.least == number.most else f"{number.least} to {number.most}"
    return " · ".join(part for part in (f"{wanted} machines", nic) if part)
