"""Figures that an estimate is made of, as the probe measured them (`workers.measure.figures`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Final

from core.recipes.parameter_formula import ModelSize
from core.records import Finite, Limits, Whole

# Gaps, in bytes for each byte of its tensors, where no whole step could be measured: what the recipes here have.
USUAL_GAPS: Final = 0.12
# A CUDA context with PyTorch's and cuBLAS's kernels, as measured (docs/gpu-tests.md).
USUAL_CONTEXT: Final = 512 << 20
# A smaller figure is wrong: other programs gave memory of the card back while it was measured.
_LEAST_CONTEXT: Final = 100 << 20
# For each byte of a pass.
_MOST_GAPS: Final = 2.0
_FP32_BYTES: Final = 4
# Bytes of AdamW's two moments for each byte of trained weights.
ADAM_RATIO: Final = 2.0
# The option of recipes that trade time for memory.
CHECKPOINTING: Final = "grad_checkpointing"


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """A recipe's model with its settings: everything that does not depend on mode, devices or micro-batch.

    Attributes:
        parameters, trainable: Numbers of weights.
        parameter_bytes, buffer_bytes, trainable_bytes: Their sizes.
        tensor_bytes: Of each trained tensor.
        block_bytes, blocks_bytes: Of the largest part that FSDP gathers by itself, and of all such parts.
        optimizer_ratio: Bytes of optimizer state for each byte of trained weights.
        recipe_bytes: What the recipe's own imports and data took.
        data_bytes: What it made for a step (rollouts).
        step_lines: The highest of ``constant + slope × micro-batch`` is the peak of a pass's new tensors; None where
            no pass was measured.
        added_lines: The same for a pass that adds to gradients which are there.
        seconds_per_sample: Of a pass.
        pass_peak_bytes: The most that a pass of whole steps made; 0: none were made.
        pass_gap_bytes: What the process, or PyTorch on a GPU, took beyond that and what it held.
        copy_gap_bytes: What a checkpoint's copy then took beyond its size.
        context_bytes: What the driver takes of a GPU for a process, besides PyTorch's memory.
        prepared_bytes: The most that making the data took of the process: learning a tokenizer, in the first run.
        mapped_bytes: Of the weights, what lies in the file that they were opened from, mapped into memory.
        note: Why something is not known, as a sentence.
        is_least: Nothing was measured: only the parameters were counted.
    """

    parameters: Whole
    trainable: Whole
    parameter_bytes: Whole
    buffer_bytes: Whole
    trainable_bytes: Whole
    tensor_bytes: tuple[Whole, ...]
    optimizer_ratio: Annotated[float, Limits(0, 100)]
    recipe_bytes: Whole = 0
    block_bytes: Whole = 0
    blocks_bytes: Whole = 0
    data_bytes: Whole = 0
    step_lines: tuple[tuple[int, ...], ...] | None = None
    added_lines: tuple[tuple[int, ...], ...] | None = None
    seconds_per_sample: Finite | None = None
    pass_peak_bytes: Whole = 0
    pass_gap_bytes: Whole = 0
    copy_gap_bytes: Whole = 0
    context_bytes: Whole = 0
    prepared_bytes: Whole = 0
    mapped_bytes: Whole = 0
    note: str = ""
    is_least: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether the activations are known."""
        return self.step_lines is not None and self.added_lines is not None

    @property
    def is_context_known(self) -> bool:
        """Whether what the driver takes of a GPU could be told from what other programs did meanwhile."""
        return self.context_bytes >= _LEAST_CONTEXT

    def gap_bytes(self, passes: int, tensors: int) -> int:
        """What the allocator leaves unused between tensors.

        Gaps come from a pass: what it makes is freed again in another order, and large tensors begin at multiples of
        2 MiB (docs/decisions/0025). So they grow with the micro-batch, and not with what an engine keeps. On a GPU the
        workspaces of cuBLAS are among them.

        Args:
            passes: The most that a pass's new tensors have.
            tensors: Of all tensors, for where no whole step could be measured.
        """
        if not self.pass_peak_bytes:
            return round(USUAL_GAPS * tensors)
        return round(min(_MOST_GAPS, self.pass_gap_bytes / self.pass_peak_bytes) * passes)

    def pass_bytes(self, samples: int, *, adds: bool) -> int:
        """The most that a pass's new tensors have at a micro-batch; its new gradients among them unless it `adds`."""
        lines = (self.added_lines if adds else self.step_lines) or ()
        return max((line[0] + line[1] * samples for line in lines), default=0)

    def optimizer_share(self, ranks: int) -> int:
        """The largest of the ranks' optimizer states where whole tensors are dealt out (ZeRO stage 1 of PyTorch).

        `ZeroRedundancyOptimizer` gives the next largest tensor to the rank that has least.
        """
        shares = [0] * max(1, ranks)
        for size in sorted(self.tensor_bytes, reverse=True):
            shares[shares.index(min(shares))] += size
        return math.ceil(self.optimizer_ratio * max(shares))


@dataclass(frozen=True, slots=True)
class Baselines:
    """Peak memory of ranks that train next to nothing, by engine.

    Attributes:
        rss_bytes: `single`, `ddp`, `zero1`, `fsdp`, `deepspeed`; one that could not be measured is missing.
        extra_commit_bytes: Windows: what such a process has reserved beyond that.
    """

    rss_bytes: dict[str, Whole] = field(default_factory=dict)
    extra_commit_bytes: dict[str, Whole] = field(default_factory=dict)

    @property
    def least_commit_bytes(self) -> int | None:
        """Windows: what even the smallest of these ranks has reserved; None where that was not measured."""
        extra = self.extra_commit_bytes
        return min((size + extra[name] for name, size in self.rss_bytes.items() if name in extra), default=None)

    def of(self, engine: str) -> int:
        """The engine's; where it is missing, the largest that is known."""
        return self.rss_bytes.get(engine, max(self.rss_bytes.values(), default=0))


def least_figures(size: ModelSize, ranks: int) -> ModelFigures:
    """What is known of a model at once, from the settings alone: how many parameters it has.

    AdamW keeps 16 bytes for each trained one in fp32: weight, gradient and two moments. A verdict on it can only be
    that even these do not fit.
    """
    trained = size.count.trained * _FP32_BYTES
    return ModelFigures(
        parameters=size.count.total,
        trainable=size.count.trained,
        parameter_bytes=size.count.total * size.weight_bytes,
        buffer_bytes=0,
        trainable_bytes=trained,
        tensor_bytes=(trained // ranks,) * ranks,
        optimizer_ratio=ADAM_RATIO,
        is_least=True,
    )
