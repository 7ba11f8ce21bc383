"""Seconds of an optimizer step on one device, made of the steps that ranks timed (`workers.estimate.step_times`)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from core.config.batch import Batch
from core.records import Limits, Whole

Seconds = Annotated[float, Limits(0, 1e9)]


@dataclass(frozen=True, slots=True)
class StepFigures:
    """Real steps of a model on one device, which exchanged nothing.

    Attributes:
        threads: Processor threads that it had; 0 on a GPU, where they hardly matter.
        micro_batch: Samples of the micro-batch, as the run has it.
        pass_s: Its data, forward and backward pass; extended from smaller ones where these take seconds.
        update_s: Clipping and the optimizer's step.
        prepare_s: For each sample of a step, what the recipe makes before it (rollouts).
        steps: How many were timed.
        tokens_per_sample: 0 where the recipe has no tokens.
        power_w: Mean power of the GPU, by its energy counter; None without one.
        devices: How many made their steps at the same time.
        wait_s: How much longer a step lasts for devices that wait for the slowest of them in each.
    """

    threads: Whole
    micro_batch: Annotated[int, Limits(1)]
    pass_s: Annotated[float, Limits(1e-9, 1e9)]
    update_s: Seconds
    prepare_s: Seconds = 0.0
    steps: Whole = 0
    tokens_per_sample: Whole = 0
    power_w: Annotated[float, Limits(0, 1e6)] | None = None
    devices: Annotated[int, Limits(1)] = 1
    wait_s: Seconds = 0.0

    def step_s(self, batch: Batch, update_share: float = 1.0) -> float:
        """Seconds of a step of one rank's part of a batch, without exchange; it updates a share of the weights."""
        samples = batch.micro * batch.accumulation
        return self.samples_s(samples) + self.update_s * update_share

    def samples_s(self, samples: float) -> float:
        """Seconds of the passes over a number of samples, in micro-batches."""
        return samples * (self.pass_s / self.micro_batch + self.prepare_s)


@dataclass(frozen=True, slots=True)
class TimedStep:
    """One step that a rank timed, of one micro-batch.

    Attributes:
        counts: Whether caches were as in a run: not in the first of several steps after another rank's turn.
        begins: Whether it was the first of a chunk, for which a recipe may make more than for others.
        prepare_s, pass_s, update_s: What the recipe makes before it; its passes; the update.
    """

    counts: bool
    begins: bool
    prepare_s: Seconds
    pass_s: Seconds
    update_s: Seconds


@dataclass(frozen=True, slots=True)
class TimedTurns:
    """What a rank timed in turns of one kind: by itself, or with all others.

    Attributes:
        threads: Processor threads that it had.
        few_s: A pass of `RankTimes.few` samples.
        steps: In their order, at least one.
        power_w: As in `StepFigures`.
    """

    threads: Whole
    few_s: Seconds
    steps: Annotated[tuple[TimedStep, ...], Limits(1)]
    power_w: Annotated[float, Limits(0, 1e6)] | None = None


@dataclass(frozen=True, slots=True)
class RankTimes:
    """All that one rank timed.

    Attributes:
        micro_batch: Samples of the run's micro-batch.
        few, samples: Samples of the first step's micro-batch, and of the others', the run's where there is time.
        batch, chunk: Samples of a step and of a chunk, for what a recipe makes before them.
        tokens_per_sample: As in `StepFigures`.
        together: With all other ranks at the same time.
        alone: While the others did nothing; None: it had no such turns.
    """

    micro_batch: Annotated[int, Limits(1)]
    few: Annotated[int, Limits(1)]
    samples: Annotated[int, Limits(1)]
    batch: Annotated[int, Limits(1)]
    chunk: Annotated[int, Limits(1)]
    tokens_per_sample: Whole
    together: TimedTurns
    alone: TimedTurns | None = None


def made_alone(rank: RankTimes) -> StepFigures | None:
    """A device's figures while the others did nothing; None without such turns."""
    return None if rank.alone is None else _of(rank, rank.alone)


def made_together(ranks: Sequence[RankTimes], alike: Sequence[int]) -> StepFigures:
    """The figures of a device that made its steps beside the others.

    Args:
        ranks: All that made steps at the same time.
        alike: Numbers of those on such devices; their mean counts.
    """
    found = [_of(ranks[number], ranks[number].together) for number in alike]
    powers = [one.power_w for one in found if one.power_w is not None]
    return StepFigures(
        found[0].threads,
        found[0].micro_batch,
        statistics.fmean(one.pass_s for one in found),
        statistics.fmean(one.update_s for one in found),
        statistics.fmean(one.prepare_s for one in found),
        min(one.steps for one in found),
        found[0].tokens_per_sample,
        statistics.fmean(powers) if len(powers) == len(found) else None,
        len(ranks),
        _wait_s(ranks),
    )


def _of(rank: RankTimes, turns: TimedTurns) -> StepFigures:
    counted = _counted(turns)
    pass_s = statistics.median(step.pass_s for step in counted)
    few, samples, micro = rank.few, rank.samples, rank.micro_batch
    if few < samples < micro:  # passes have a part that does not grow with the samples
        pass_s += (micro - samples) * max(0.0, pass_s - turns.few_s) / (samples - few)
    elif samples < micro:
        pass_s *= micro / samples
    return StepFigures(
        turns.threads,
        micro,
        max(1e-9, pass_s),
        statistics.median(step.update_s for step in counted),
        _prepare_s(rank, turns),
        len(counted),
        rank.tokens_per_sample,
        turns.power_w,
    )


def _prepare_s(rank: RankTimes, turns: TimedTurns) -> float:
    """For each sample: a step's share, and a chunk's where its first step takes longer than others."""
    inside = [step.prepare_s for step in turns.steps if not step.begins]
    begins = [step.prepare_s for step in turns.steps if step.begins]
    each_s = statistics.median(inside) if inside else 0.0
    first_s = max(0.0, statistics.median(begins) - each_s) if begins else 0.0
    return each_s / rank.batch + first_s / rank.chunk


def _wait_s(ranks: Sequence[RankTimes]) -> float:
    """How much longer the slowest rank of each step takes than the rank that is slowest in the middle."""
    lengths = [[step.pass_s + step.update_s for step in _counted(rank.together)] for rank in ranks]
    slowest = [max(step) for step in zip(*lengths, strict=False)]
    middle_s: float = statistics.median(slowest) - max(statistics.median(length) for length in lengths)
    return max(0.0, middle_s)


def _counted(turns: TimedTurns) -> Sequence[TimedStep]:
    return [step for step in turns.steps if step.counts] or turns.steps
