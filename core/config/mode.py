"""`Mode`: how several devices share a run's work, and its traits, which everything else asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
    def traits(self) -> ModeTraits:
        return _TRAITS[self]

    @property
    def label(self) -> str:
        """What people call it, for use inside a sentence."""
        return self.traits.label

    @property
    def is_connected(self) -> bool:
        """Ranks exchange tensors at every step."""
        return self.traits.is_connected

    @property
    def is_sharded(self) -> bool:
        """Each rank holds only a part of the training state."""
        return max(self.traits.stages) > 0

    @property
    def is_apart(self) -> bool:
        """Each rank trains a model of its own, on chunks of its own."""
        return self.traits.is_apart

    def stage(self, zero_stage: int) -> int:
        """What is sharded in a run with this setting: 0 nothing, 1 the optimizer's state, 2 also gradients, 3 all."""
        stages = self.traits.stages
        return zero_stage if len(stages) > 1 else stages[0]

    def reduces_gradients(self, zero_stage: int, *, by_torch: bool) -> bool:
        """Whether a step sends whole gradients, in DDP's buckets; `by_torch`: PyTorch's own engine shards."""
        stage = self.stage(zero_stage)
        return self.is_connected and (stage == 0 or (stage == 1 and by_torch))

    def replica_groups(self, ranks: int) -> int:
        """Groups that each train a model on chunks of their own: every rank by itself, or all ranks as one."""
        return ranks if self.is_apart else 1

    def group_size(self, ranks: int) -> int:
        """Ranks of one replica group, which share each batch."""
        return ranks // self.replica_groups(ranks)


@dataclass(frozen=True, slots=True)
class ModeTraits:
    """What distinguishes a mode.

    Attributes:
        label: Its name inside a sentence.
        is_connected: Ranks exchange tensors at every step.
        is_apart: Each rank trains a model of its own.
        stages: What it can shard, as stages of ZeRO; 0 is nothing.
    """

    label: str
    is_connected: bool = False
    is_apart: bool = False
    stages: tuple[int, ...] = (0,)


_TRAITS: Final = {
    Mode.AUTO: ModeTraits("automatic"),
    Mode.SINGLE: ModeTraits("one device"),
    Mode.DDP: ModeTraits("DDP", is_connected=True),
    Mode.INDEPENDENT: ModeTraits("parallel-independent", is_apart=True),
    Mode.ZERO: ModeTraits("ZeRO", is_connected=True, stages=(1, 2, 3)),
    Mode.FSDP: ModeTraits("FSDP", is_connected=True, stages=(3,)),
}
# The modes a run can train in, once it is decided.
RESOLVED_MODES: Final = tuple(mode for mode in Mode if mode is not Mode.AUTO)
SHARDED: Final = tuple(mode for mode in Mode if mode.is_sharded)
APART: Final = tuple(mode for mode in Mode if mode.is_apart)
# Modes that can send whole gradients, in DDP's buckets.
IN_BUCKETS: Final = tuple(mode for mode in Mode if mode.is_connected and min(mode.traits.stages) < 2)


def mode_choices(names: Iterable[str]) -> str:
    """The modes for several devices among `names`, as a sentence lists them."""
    return " or ".join(Mode.read(name).label for name in names if name != Mode.SINGLE) or "one device"


def mode_label(name: str, default: str = "") -> str:
    """The label of a resolved mode that a file names; `default` for any other text."""
    return next((mode.label for mode in RESOLVED_MODES if mode == name), default)
