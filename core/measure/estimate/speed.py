"""Time and speed-up of a run in every mode side by side, made of measured figures. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal

from core.config.batch import Batch
from core.config.sync import resolve_synchronisation
from core.launch.mode import TORCH
from core.launch.resolved import ResolvedRun
from core.measure.estimate.figures import ModelFigures
from core.measure.estimate.memory import Layout
from core.measure.estimate.modes import ModeRun, mode_name, mode_runs, run_layout
from core.measure.estimate.shape import StepKey, step_key
from core.measure.link import Link
from core.records import Limits, Whole

Gain = Literal["faster", "same", "slower", "unknown"]

# Load balancing that brings less is not proposed.
WORTH: Final = 0.05
# Error of a prediction. Speed-ups in docs/estimate.md are off by 13 %, but nothing else ran there.
USUAL_ERROR: Final = 0.2
# DDP's buckets; other engines' are of the same order.
BUCKET_BYTES: Final = 25 << 20
NO_STEP: Final = "No step was timed on this device, so the time is not known."
NO_LINK: Final = "The link between the devices was not measured, so the time is not known."

Seconds = Annotated[float, Limits(0, 1e9)]


@dataclass(frozen=True, slots=True)
class StepFigures:
    """Real steps of a model on one device, without an exchange (`workers.measure.step_times`).

    Attributes:
        micro_batch: Samples of the micro-batch, as the run has it.
        pass_s: Its data, forward and backward pass; extended from smaller ones where these take seconds.
        update_s: Clipping and the optimizer's step.
        prepare_s: Of the recipe's preparations (rollouts), for each sample of a step.
        tokens_per_sample: 0 where the recipe has no tokens.
        wait_s: Extra time of a step for devices that wait for the slowest of them in each.
    """

    micro_batch: Annotated[int, Limits(1)]
    pass_s: Annotated[float, Limits(1e-9, 1e9)]
    update_s: Seconds
    prepare_s: Seconds = 0.0
    tokens_per_sample: Whole = 0
    wait_s: Seconds = 0.0

    def step_s(self, batch: Batch, update_share: float = 1.0) -> float:
        """Seconds of a step of one rank's part of a batch, without exchange; it updates a share of the weights."""
        return self.samples_s(batch.micro * batch.accumulation) + self.update_s * update_share

    def samples_s(self, samples: float) -> float:
        """Seconds of the passes over a number of samples, in micro-batches."""
        return samples * (self.pass_s / self.micro_batch + self.prepare_s)


@dataclass(frozen=True, slots=True)
class TimeFigures:
    """Measurements from which time is predicted.

    Attributes:
        steps: Of one device by itself, and of one beside all others.
        link: Between all devices of the run.
        note: Why something was not measured, as a sentence.
    """

    steps: Mapping[StepKey, StepFigures] = field(default_factory=dict)
    link: Link | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Time of a run in one mode; None is not known.

    Attributes:
        name: As in `ModeEstimate`.
        step_s: Seconds of a step, exchange included.
        exchange_s: Share of it that the exchange takes, in seconds.
        sent_bytes: By each rank in a step.
        samples_per_s, tokens_per_s: Of all ranks together; tokens None where the recipe has none.
        speedup: Samples a second ÷ those of one device.
        hours: Of training on as many samples as the run in its own mode.
        reason: Why the time is not known.
    """

    name: str
    step_s: float | None = None
    exchange_s: float | None = None
    sent_bytes: float | None = None
    samples_per_s: float | None = None
    tokens_per_s: float | None = None
    speedup: float | None = None
    hours: float | None = None
    reason: str = ""

    @property
    def gain(self) -> Gain:
        """Against one device, where it is more than predictions are off."""
        if self.speedup is None:
            return "unknown"
        return "faster" if self.speedup >= 1 + USUAL_ERROR else "slower" if self.speedup <= 1 - USUAL_ERROR else "same"


def estimate_times(run: ResolvedRun, figures: ModelFigures, found: TimeFigures) -> tuple[TimeEstimate, ...]:
    """Estimate a run's time in every mode, in the order of `core.measure.estimate.modes.estimate_modes`."""
    made = [_in_mode(other, figures, found) for other in mode_runs(run)]
    one = made[0]
    tokens = next((steps.tokens_per_sample for steps in found.steps.values()), 0)
    # None where epochs or a goal decide how long the run is.
    samples = None if run.config.steps is None else run.config.steps * run.batch.global_ * run.replica_groups

    def completed(time: TimeEstimate) -> TimeEstimate:
        """Add the speed-up against one device, and the hours of the whole run."""
        rate = time.samples_per_s
        if rate is None:
            return time
        return replace(
            time,
            tokens_per_s=rate * tokens if tokens else None,
            speedup=rate / one.samples_per_s if one.samples_per_s else None,
            hours=None if samples is None else samples / rate / 3600,
        )

    return tuple(completed(time) for time in made)


def time_of(times: tuple[TimeEstimate, ...], run: ResolvedRun) -> TimeEstimate:
    """Return the time in the mode which a run was resolved to."""
    name = mode_name(run)
    return next(time for time in times if time.name == name)


def _in_mode(other: ModeRun, figures: ModelFigures, found: TimeFigures) -> TimeEstimate:
    name = other.variant.name
    return TimeEstimate(name, reason=other.reason) if other.run is None else _speed(other.run, figures, found)


def _speed(run: ResolvedRun, figures: ModelFigures, found: TimeFigures) -> TimeEstimate:
    """A run's speed in its own mode, or why it is not known."""
    name = mode_name(run)
    steps = [found.steps.get(step_key(device, run)) for device in run.devices]
    known = [one for one in steps if one is not None]
    if len(known) < len(steps):
        return TimeEstimate(name, reason=NO_STEP)
    layout = run_layout(run, figures)
    rule = resolve_synchronisation(run.config) if run.mode.is_apart else None
    every = None if rule is None else rule.every
    traffic = step_traffic(figures, layout, by_nccl=run.backend == "nccl", sync_every=every)
    exchange_s = 0.0
    if traffic.collectives:
        if found.link is None:
            return TimeEstimate(name, reason=NO_LINK)
        by_fsdp = run.mode.is_sharded and layout.stage > 1 and not layout.by_deepspeed
        exchange_s = traffic.seconds(found.link, shared_memory=layout.shared_memory, by_fsdp=by_fsdp)
    share = 1 / run.world_size if run.mode.is_sharded else 1.0
    times = [one.step_s(run.batch, share) + exchange_s for one in known]
    if run.mode.is_apart and every is None:
        step_s, rate = sum(times) / len(times), sum(run.batch.global_ / time_s for time_s in times)
    else:
        if run.config.balance == "measured":
            step_s = _balanced_s(run, known) + exchange_s
        else:
            step_s = max(times) + (max(one.wait_s for one in known) if run.mode.is_connected else 0.0)
        rate = run.batch.global_ * run.replica_groups / step_s
    return TimeEstimate(name, step_s, exchange_s, traffic.sent_bytes(run.world_size), rate)


@dataclass(frozen=True, slots=True)
class Traffic:
    """The exchange of one step, as each rank takes part in it.

    Volumes are those of Rajbhandari et al. 2020 (ZeRO, section 7), with W ranks and a tensor of B bytes: an all-reduce
    sends 2 (W - 1) / W × B from each rank, a gather or a reduce-scatter half of that. Two things differ here: gloo's
    reduce-scatter is an all-reduce, and PyTorch's ZeRO stage 1 sums gradients as DDP does and then sends new weights.

    Attributes:
        reduced_bytes: Tensors that are summed over the ranks and stay whole.
        moved_bytes: Tensors that are gathered, or summed so that each rank keeps its share.
        collectives: Operations, each of which costs at least the link's latency.
    """

    reduced_bytes: float = 0.0
    moved_bytes: float = 0.0
    collectives: float = 0.0

    def sent_bytes(self, ranks: int) -> float:
        """Bytes that each rank sends."""
        return (2 * self.reduced_bytes + self.moved_bytes) * (ranks - 1) / ranks if ranks > 1 else 0.0

    def seconds(self, link: Link, *, shared_memory: bool = False, by_fsdp: bool = False) -> float:
        """Seconds of the exchange where nothing of it overlaps with computing.

        Args:
            link: Between the ranks.
            shared_memory: Sums go through it.
            by_fsdp: PyTorch's FSDP exchanges the tensors, which copies them several times.
        """
        if by_fsdp and link.sharded_mb_per_s is not None and link.sharded_latency_s is not None:
            moved_s = (self.reduced_bytes + self.moved_bytes / 2) / (link.sharded_mb_per_s * 1e6)
            return self.collectives * link.sharded_latency_s + moved_s
        rate = link.mb_per_s * 1e6
        shared = link.shared_mb_per_s if shared_memory else None
        reduce_rate = rate if shared is None else max(rate, shared * 1e6)
        latency_s = self.collectives * link.latency_s if shared is None else 0.0
        return latency_s + self.reduced_bytes / reduce_rate + self.moved_bytes / 2 / rate


def step_traffic(figures: ModelFigures, layout: Layout, *, by_nccl: bool, sync_every: int | None = None) -> Traffic:
    """Compute the exchange of a step.

    Args:
        figures: The model's.
        layout: Of the run.
        by_nccl: NCCL connects the ranks, which sums and shares out in one operation.
        sync_every: Steps between two rounds of independent ranks; None: they never synchronise.
    """
    if layout.ranks < 2:
        return Traffic()
    trained = figures.trainable_bytes
    buckets = max(1, math.ceil(trained / BUCKET_BYTES))
    if layout.mode.is_sharded:
        return _sharded(figures, layout, buckets, by_nccl=by_nccl)
    if layout.mode.is_connected:
        return Traffic(trained, 0.0, buckets)
    return Traffic() if sync_every is None else Traffic(trained / sync_every, 0.0, buckets / sync_every)


def _sharded(figures: ModelFigures, layout: Layout, buckets: int, *, by_nccl: bool) -> Traffic:
    """Stages 2 and 3 share out gradients after each micro-batch, stage 3 also gathers weights in each pass."""
    trained = float(figures.trainable_bytes)
    weights = figures.parameter_bytes * (0.5 if layout.narrow else 1.0)
    if layout.stage == 1 and not layout.by_deepspeed:
        return Traffic(trained, trained, 2 * buckets)
    times = layout.accumulation if layout.stage > 1 else 1
    gathers = 2 * layout.accumulation if layout.stage == 3 else 1
    parts = buckets if layout.by_deepspeed else _blocks(figures)
    reduced, scattered = (0.0, times * trained) if by_nccl else (times * trained, 0.0)
    return Traffic(reduced, scattered + gathers * weights, parts * (times + gathers))


def _blocks(figures: ModelFigures) -> int:
    """Parts that FSDP gathers by themselves, and what is left."""
    return 1 + (round(figures.blocks_bytes / figures.block_bytes) if figures.block_bytes else 0)


@dataclass(frozen=True, slots=True)
class BalanceGain:
    """The gain of load balancing, from steps that were timed on each device.

    Attributes:
        speedup: Time of a step in equal shares ÷ in shares by speed.
        shares: Samples of a batch for each device, in the run's order.
        waiting: The place in the run of the device that waits longest in equal shares.
        waits: The share of each step for which it waits.
    """

    speedup: float
    shares: tuple[int, ...]
    waiting: int
    waits: float


def can_balance(run: ResolvedRun) -> bool:
    """Whether load balancing can be turned on for a run, and is not yet."""
    can = run.mode.reduces_gradients(run.config.zero_stage, by_torch=run.choice.engine == TORCH)
    return can and run.world_size > 1 and run.config.balance != "measured"


def balance_gain(run: ResolvedRun, figures: ModelFigures, found: TimeFigures) -> BalanceGain | None:
    """The gain of load balancing; None where it cannot be used, is used, was not measured, or is not worth it."""
    if not can_balance(run):
        return None
    steps = [found.steps.get(step_key(device, run)) for device in run.devices]
    known = [one for one in steps if one is not None]
    equal = _speed(run, figures, found)
    shared = _speed(replace(run, config=run.config.replace(balance="measured")), figures, found)
    if len(known) < len(steps) or equal.step_s is None or shared.step_s is None:
        return None
    speedup = equal.step_s / shared.step_s
    if speedup < 1 + WORTH:
        return None
    rates = [1 / one.samples_s(1) for one in known]
    shares = tuple(round(run.batch.global_ * rate / sum(rates)) for rate in rates)
    own = [one.step_s(run.batch, 1.0) for one in known]
    return BalanceGain(speedup, shares, own.index(min(own)), 1 - min(own) / equal.step_s)


def _balanced_s(run: ResolvedRun, steps: list[StepFigures]) -> float:
    """Seconds of a step whose samples are shared out so that all devices finish together, without exchange."""
    rate = sum(1 / one.samples_s(1) for one in steps)
    return run.batch.global_ / rate + max(one.update_s for one in steps)
