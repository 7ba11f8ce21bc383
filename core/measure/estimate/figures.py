"""Measured figures of a model and of bare ranks, from which an estimate is computed (`workers.measure.figures`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Final

from core.recipes.parameter_formula import ModelSize
from core.records import Finite, Limits, Whole

# Gaps, in bytes for each byte of tensors, where no whole step could be measured: those of the recipes here.
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
    """Figures of a recipe's model with its settings that do not depend on mode, devices or micro-batch.

    Attributes:
        tensor_bytes: Of each trained tensor.
        block_bytes, blocks_bytes: Of the largest part that FSDP gathers by itself, and of all such parts.
        optimizer_ratio: Bytes of optimizer state for each byte of trained weights.
        recipe_bytes: Of the recipe's own imports and data.
        data_bytes: Of its data for a step (rollouts).
        step_lines: The highest of ``constant + slope × micro-batch`` is the peak of a pass's new tensors; None where
            no pass was measured.
        added_lines: The same for a pass that adds to gradients which are there.
        seconds_per_sample: Of a pass.
        pass_peak_bytes: Peak of the new tensors in a pass of whole steps; 0: none were made.
        pass_gap_bytes: Memory of the process, or PyTorch's on a GPU, beyond that and the tensors it held.
        copy_gap_bytes: Memory of a checkpoint's copy beyond its size.
        context_bytes: Memory of a GPU that the driver takes for a process, besides PyTorch's.
        prepared_bytes: Peak of the process while making the data: learning a tokenizer, in the first run.
        mapped_bytes: Of the weights that lie in a mapped file, from which they were opened.
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
    def is_complete(self) -> bool:
        """Whether the probe measured all of it: a prediction of less would be compared with a whole run."""
        return self.is_measured and not self.note

    @property
    def is_context_known(self) -> bool:
        """Whether the driver's memory could be told apart from that of other programs."""
        return self.context_bytes >= _LEAST_CONTEXT

    def gap_bytes(self, passes: int, tensors: int) -> int:
        """Bytes that the allocator leaves unused between tensors.

        Gaps come from a pass: its tensors are freed in another order than they were made, and large ones begin at
        multiples of 2 MiB (docs/decisions/0025). So they grow with the micro-batch, and not with an engine's own
        tensors. On a GPU the workspaces of cuBLAS are among them.

        Args:
            passes: Peak of a pass's new tensors.
            tensors: Of all tensors, for models without a measured whole step.
        """
        if not self.pass_peak_bytes:
            return round(USUAL_GAPS * tensors)
        return round(min(_MOST_GAPS, self.pass_gap_bytes / self.pass_peak_bytes) * passes)

    def pass_bytes(self, samples: int, *, adds: bool) -> int:
        """Peak of a pass's new tensors at a micro-batch; its new gradients are among them unless it `adds`."""
        lines = (self.added_lines if adds else self.step_lines) or ()
        return max((line[0] + line[1] * samples for line in lines), default=0)

    def optimizer_share(self, ranks: int) -> int:
        """Bytes of the largest rank's optimizer state where whole tensors are dealt out (ZeRO stage 1 of PyTorch).

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
        extra_commit_bytes: Windows: memory that such a process has reserved beyond that.
    """

    rss_bytes: dict[str, Whole] = field(default_factory=dict)
    extra_commit_bytes: dict[str, Whole] = field(default_factory=dict)

    @property
    def least_commit_bytes(self) -> int | None:
        """Windows: reserved memory of the smallest of these ranks; None where that was not measured."""
        extra = self.extra_commit_bytes
        return min((size + extra[name] for name, size in self.rss_bytes.items() if name in extra), default=None)

    def of(self, engine: str) -> int:
        """Return the engine's peak; where it is missing, the largest known one."""
        return self.rss_bytes.get(engine, max(self.rss_bytes.values(), default=0))


def least_figures(size: ModelSize, ranks: int) -> ModelFigures:
    """Figures of a model from its number of parameters alone, which the settings tell at once.

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
