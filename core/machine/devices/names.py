"""Names of devices for people, in the window and in messages: "GPU 0 · RTX 4090", "CPU 0"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core.machine.devices.device import Device

SEPARATOR: Final = " · "
_MAKERS: Final = ("NVIDIA ", "GeForce ", "AMD ", "Radeon ")
_UUID_LETTERS: Final = 12


def device_label(device: Device) -> str:
    """Name a device; its number tells two of one model apart: ``GPU 0 · RTX 4090``, ``CPU 0``."""
    if device.kind == "cpu":
        return f"CPU {device.index}"
    model = device.name
    for maker in _MAKERS:
        model = model.removeprefix(maker)
    return model if device.hidden_by else f"GPU {device.index}{SEPARATOR}{model}"


def short_label(device: Device) -> str:
    return device_label(device).partition(SEPARATOR)[0]


def label_by_uuid(uuid: str, labels: Mapping[str, str]) -> str:
    """Name a device by its UUID, also one that this machine no longer has."""
    if uuid in labels:
        return labels[uuid]
    if uuid.startswith("cpu:"):
        return f"CPU {uuid.removeprefix('cpu:')}"
    return uuid if len(uuid) <= _UUID_LETTERS else f"{uuid[:_UUID_LETTERS]}…"


@dataclass(frozen=True, slots=True)
class RankNames:
    """Names a run's ranks by their devices.

    Attributes:
        devices: UUIDs by rank; empty while they are not known.
        labels: Devices of this machine, by UUID.
    """

    devices: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def full(self, rank: int) -> str:
        """The device of a rank: "GPU 0 · RTX 4090"; the rank itself where its device is not known."""
        if 0 <= rank < len(self.devices):
            return label_by_uuid(self.devices[rank], self.labels)
        return f"rank {rank}"

    def short(self, rank: int) -> str:
        """As `full`, without the model: "GPU 0"."""
        return self.full(rank).partition(SEPARATOR)[0]

    def with_rank(self, rank: int) -> str:
        """For tooltips: "GPU 0 (rank 0)"."""
        short = self.short(rank)
        return short if short == f"rank {rank}" else f"{short} (rank {rank})"
