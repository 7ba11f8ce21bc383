"""Figures of a made-up model of 100 MB, bare ranks of 10 MB, a run of it and its timed steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from core.config import RunConfig
from core.config.mode import Mode
from core.measure.estimate.figures import Baselines, ModelFigures
from core.measure.estimate.free import Free
from core.measure.estimate.speed import StepFigures, TimeFigures
from core.measure.link import Link
from tests.helpers.resolved_run import resolved_run

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
    pass_peak_bytes=100 * MB,
)
BASELINES = Baselines(dict.fromkeys(("single", "ddp", "zero1", "fsdp", "deepspeed"), 10 * MB))

CONFIG = RunConfig(batch_size=8, steps=3600, precision="fp32")
# On 8 cores: 8 threads for one device, 4 for each of two.
RUN = resolved_run(CONFIG, Mode.DDP, 2)
LINK = Link(mb_per_s=500.0, latency_s=0.0, ranks=2, backend="gloo", shared_mb_per_s=5000.0)
ALONE = StepFigures(micro_batch=8, pass_s=0.9, update_s=0.1, tokens_per_sample=100)
SHARED = StepFigures(micro_batch=8, pass_s=1.08, update_s=0.1, tokens_per_sample=100)
FOUND = TimeFigures({("cpu", 8, 1): ALONE, ("cpu", 4, 2): SHARED}, LINK)
MUCH = Free(ram=100_000 * MB)


def figures(**changes: Any) -> ModelFigures:
    """The same with some values changed."""
    return replace(FIGURES, **changes)
