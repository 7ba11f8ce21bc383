"""Looks at a machine: its devices and its PyTorch, as values that the checks of a run here take too."""

from __future__ import annotations

from dataclasses import dataclass

from core.machine.devices import Device
from core.machine.platform import Platform
from core.machines.answers import Devices
from core.machines.machine import Machine
from core.machines.session import Session, serving


@dataclass(frozen=True, slots=True)
class Look:
    """A machine as it was found.

    Attributes:
        machine: The machine.
        devices: Its devices.
        platform: Its system and its PyTorch.
        problem: Why there is no GPU, or fewer than expected; empty: there is nothing to say.
    """

    machine: Machine
    devices: tuple[Device, ...]
    platform: Platform
    problem: str = ""


def look_at(machine: Machine) -> Look:
    """Asks a machine. Blocks; may be called from any thread.

    Raises:
        UnreachableError: There is no connection.
        MachineError: It is not set up, or refuses.
        ProtocolError: Its answer cannot be read.
    """
    with serving(machine) as session:
        return look_through(session)


def look_through(session: Session) -> Look:
    """As `look_at`, over a connection that serves."""
    answer = session.ask({"op": "devices"}, Devices)
    return Look(session.machine, answer.devices, answer.platform, answer.problem or "")
