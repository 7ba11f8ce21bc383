"""`Mode`: how several devices share a run's work."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


class Mode(StrEnum):
    """How devices share the work. The value stands in files and behind ``--mode``.

    `AUTO` can only be requested: `core.launch` turns it into one of the others.
    """

    AUTO = "auto"
    SINGLE = "single"
    DDP = "ddp"
    INDEPENDENT = "independent"
    ZERO = "zero"
    FSDP = "fsdp"

    @classmethod
    def read(cls, name: str) -> Mode:
        """The mode that a file names; `AUTO` for a name that no mode has."""
        return next((mode for mode in cls if mode == name), cls.AUTO)

    @property
    def label(self) -> str:
        """What people call it, for use inside a sentence."""
        return _LABELS[self]

    @property
    def is_connected(self) -> bool:
        """Ranks exchange tensors at every step."""
        return self in (Mode.DDP, Mode.ZERO, Mode.FSDP)

    @property
    def is_sharded(self) -> bool:
        """Each rank holds only a part of the training state."""
        return self in (Mode.ZERO, Mode.FSDP)

    def replica_groups(self, ranks: int) -> int:
        """Groups that each train a model on chunks of their own: every rank by itself, or all ranks as one."""
        return ranks if self is Mode.INDEPENDENT else 1

    def group_size(self, ranks: int) -> int:
        """Ranks of one replica group, which share each batch."""
        return ranks // self.replica_groups(ranks)


_LABELS: Final = {
    Mode.AUTO: "automatic",
    Mode.SINGLE: "one device",
    Mode.DDP: "DDP",
    Mode.INDEPENDENT: "parallel-independent",
    Mode.ZERO: "ZeRO",
    Mode.FSDP: "FSDP",
}
RESOLVED_MODES: Final = tuple(mode for mode in Mode if mode is not Mode.AUTO)
"""The modes a run can train in, once it is decided."""


def mode_choices(names: Iterable[str]) -> str:
    """The modes for several devices among `names`, as a sentence lists them."""
    return " or ".join(Mode.read(name).label for name in names if name != Mode.SINGLE) or "one device"


def mode_label(name: str, default: str = "") -> str:
    """The label of a resolved mode that a file names; `default` for any other text."""
    return next((mode.label for mode in RESOLVED_MODES if mode == name), default)
