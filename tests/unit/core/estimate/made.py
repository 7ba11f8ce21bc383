"""Figures of a made-up model of 100 MB, and bare ranks of 10 MB."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from core.estimate.figures import Baselines, ModelFigures

MB = 1_000_000
FIGURES = ModelFigures(
    parameters=25 * MB,
    trainable=25 * MB,
    parameter_bytes=100 * MB,
    buffer_bytes=0,
    trainable_bytes=100 * MB,
    tensor_bytes=(60 * MB, 30 * MB, 10 * MB),
    optimizer_ratio=2.0,
    block_bytes=10 * MB,
    blocks_bytes=80 * MB,
    step_lines=((100 * MB, 2 * MB), (0, 40 * MB)),
    added_lines=((0, 40 * MB),),
    seconds_per_sample=0.1,
    tensor_peak_bytes=100 * MB,
    process_peak_bytes=100 * MB,
)
BASELINES = Baselines(dict.fromkeys(("single", "ddp", "zero1", "fsdp", "deepspeed"), 10 * MB))


def figures(**changes: Any) -> ModelFigures:
    """The same with some values changed."""
    return replace(FIGURES, **changes)
