"""`Mode`: the way in which devices share a run's work, and its traits, which everything else asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self


@dataclass(frozen=True, slots=True)
class ModeTraits:
    """The differences of a mode for estimates, the doctor, New run and Resume.

    Attributes:
        value: Its name in files and behind ``--mode``.
        label: Its name inside a sentence.
        summaries: Its description in the doctor: a sentence for each of `stages`.
        button: Its button in New run; empty: it has none.
        meaning: Its description below that button.
        program_meaning: The same for a recipe that runs a program of its own; empty: `meaning`.
        is_connected: Ranks exchange tensors at every step.
        is_apart: Each rank trains a model of its own.
        stages: The stages of ZeRO by which it can shard; 0 is nothing.
        by_deepspeed: DeepSpeed can shard instead of PyTorch.
    """

    value: str
    label: str
    summaries: tuple[str, ...] = ("",)
    button: str = ""
    meaning: str = ""
    program_meaning: str = ""
    is_connected: bool = False
    is_apart: bool = False
    stages: tuple[int, ...] = (0,)
    by_deepspeed: bool = False


class Mode(StrEnum):
    """A mode, by its name in files and behind ``--mode``.

    `AUTO` can only be requested: `core.launch` turns it into one of the others.
    """

    traits: ModeTraits

    AUTO = ModeTraits("auto", "automatic")
    SINGLE = ModeTraits("single", "one device", ("One rank, nothing to exchange.",))
    DDP = ModeTraits(
        "ddp",
        "DDP",
        ("Each device holds the model; gradients are averaged at each step.",),
        button="&DDP",
        meaning="Each device trains on a share of every batch; gradients are averaged at every step. One model, "
        "faster.",
        program_meaning="The program runs once on each device, as torchrun starts it: all processes share one process "
        "group.",
        is_connected=True,
    )
    INDEPENDENT = ModeTraits(
        "independent",
        "parallel-independent",
        ("Each device trains a model of its own; merged at the end.",),
        button="&Independent",
        meaning="Each device trains its own model on its own data, without waiting for the others. The sync "
        "interval sets how often they are averaged.",
        program_meaning="The program runs once on each device as an independent, single-process run.",
        is_apart=True,
    )
    ZERO = ModeTraits(
        "zero",
        "ZeRO",
        (
            "As DDP; the optimizer's state is shared out.",
            "Optimizer state and gradients are shared out.",
            "Weights are shared out too: for models too large for one device.",
        ),
        button="&ZeRO",
        meaning="Like DDP, but each device stores only its share of the state that the stage names: larger models fit.",
        is_connected=True,
        stages=(1, 2, 3),
        by_deepspeed=True,
    )
    FSDP = ModeTraits(
        "fsdp",
        "FSDP",
        ("PyTorch's own way to share out weights.",),
        button="&FSDP",
        meaning="PyTorch's fully sharded data parallel: each device stores only its share of weights, gradients and "
        "optimizer state, so the largest models fit.",
        is_connected=True,
        stages=(3,),
    )

    def __new__(cls, traits: ModeTraits) -> Self:
        mode = str.__new__(cls, traits.value)
        mode._value_, mode.traits = traits.value, traits
        return mode

    @classmethod
    def read(cls, name: str) -> Mode:
        """The mode that a file names; `AUTO` for a name that no mode has."""
        return next((mode for mode in cls if mode == name), cls.AUTO)

    @property
    def label(self) -> str:
        return self.traits.label

    @property
    def is_connected(self) -> bool:
        return self.traits.is_connected

    @property
    def is_sharded(self) -> bool:
        """Each rank holds only a part of the training state."""
        return max(self.traits.stages) > 0

    @property
    def is_apart(self) -> bool:
        return self.traits.is_apart

    @property
    def variants(self) -> tuple[ModeVariant, ...]:
        """The mode with each stage that can be asked for."""
        stages = self.traits.stages if len(self.traits.stages) > 1 else (0,)
        return tuple(ModeVariant(self, *one) for one in zip(stages, self.traits.summaries, strict=True))

    def variant(self, zero_stage: int) -> ModeVariant:
        return next(one for one in self.variants if one.stage in (0, zero_stage))

    def stage(self, zero_stage: int) -> int:
        """The sharded state with this setting: 0 nothing, 1 the optimizer's, 2 also gradients, 3 all."""
        stages = self.traits.stages
        return zero_stage if len(stages) > 1 else stages[0]

    def reduces_gradients(self, zero_stage: int, *, by_torch: bool) -> bool:
        """True if a step sends whole gradients, in DDP's buckets; `by_torch`: PyTorch's own engine shards."""
        stage = self.stage(zero_stage)
        return self.is_connected and (stage == 0 or (stage == 1 and by_torch))

    def replica_groups(self, ranks: int) -> int:
        """The number of groups that train a model on chunks of their own: each rank, or all ranks together."""
        return ranks if self.is_apart else 1

    def group_size(self, ranks: int) -> int:
        """Ranks of one replica group, which share each batch."""
        return ranks // self.replica_groups(ranks)


@dataclass(frozen=True, slots=True)
class ModeVariant:
    """A mode, and of ZeRO a stage: a line of estimates, of the doctor and of Resume.

    Attributes:
        stage: The `zero_stage` to ask for; 0 in a mode that takes none.
    """

    mode: Mode
    stage: int
    summary: str

    @property
    def name(self) -> str:
        """Its name in files: "ddp", "zero1"."""
        return f"{self.mode}{self.stage or ''}"

    @property
    def label(self) -> str:
        return f"{self.mode.label} {self.stage}" if self.stage else self.mode.label

    @property
    def title(self) -> str:
        """The label at the beginning of a line: "One device"."""
        return self.label[0].upper() + self.label[1:]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of `RunConfig` that ask for it."""
        return {"mode": self.mode, **({"zero_stage": self.stage} if self.stage else {})}


# The modes a run can train in, once it is decided.
RESOLVED_MODES: Final = tuple(mode for mode in Mode if mode is not Mode.AUTO)
SHARDED: Final = tuple(mode for mode in Mode if mode.is_sharded)
APART: Final = tuple(mode for mode in Mode if mode.is_apart)
# Modes that can send whole gradients, in DDP's buckets.
IN_BUCKETS: Final = tuple(mode for mode in Mode if mode.is_connected and min(mode.traits.stages) < 2)
# Lines of estimates and of the doctor: what trains one model first.
VARIANTS: Final = tuple(
    variant for mode in sorted(RESOLVED_MODES, key=lambda mode: mode.is_apart) for variant in mode.variants
)


def mode_choices(names: Iterable[str]) -> str:
    """List the modes for several devices among `names`, for a sentence."""
    return " or ".join(Mode.read(name).label for name in names if name != Mode.SINGLE) or "one device"


def mode_label(name: str, default: str = "") -> str:
    """The label of a resolved mode in a file; `default` for any other text."""
    return next((mode.label for mode in RESOLVED_MODES if mode == name), default)
