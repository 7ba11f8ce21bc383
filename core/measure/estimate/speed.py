"""Time, speed-up and cost of a run in every mode side by side, made of measured figures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal

from core.config.batch import Batch
from core.config.sync import resolve_synchronisation
from core.launch.mode import TORCH
from core.launch.resolved import ResolvedRun
from core.measure.estimate.figures import ModelFigures
from core.measure.estimate.history import PastRun
from core.measure.estimate.modes import ModeRun, mode_name, mode_runs, run_layout
from core.measure.estimate.prices import Prices
from core.measure.estimate.shape import StepKey, step_key
from core.measure.estimate.traffic import step_traffic
from core.measure.link import Link
from core.records import Limits, Whole

Gain = Literal["faster", "same", "slower", "unknown"]

# A speed-up of less than this, up or down, is none, however well it is known.
WORTH: Final = 0.05
# Error of a prediction where no run has shown it yet. Speed-ups in docs/estimate.md are off by 13 %, but nothing else
# ran there.
USUAL_ERROR: Final = 0.2
NO_STEP: Final = "No step was timed on this device, so the time is not known."
NO_LINK: Final = "The link between the devices was not measured, so the time is not known."

Seconds = Annotated[float, Limits(0, 1e9)]


@dataclass(frozen=True, slots=True)
class StepFigures:
    """Real steps of a model on one device, which exchanged nothing (`workers.measure.step_times`).

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
class TimeFigures:
    """What a prediction of time is made of.

    Attributes:
        steps: Of one device by itself, and of one beside all others.
        link: Between all devices of the run.
        past: The newest run of the same shape in each mode, by the mode's name.
        note: Why something was not measured, as a sentence.
        error: How far off predictions for earlier runs were, as a share; None: too few can tell.
    """

    steps: Mapping[StepKey, StepFigures] = field(default_factory=dict)
    link: Link | None = None
    past: Mapping[str, PastRun] = field(default_factory=dict)
    note: str = ""
    error: float | None = None


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """How long a run takes in one mode; None is not known.

    Attributes:
        name: As in `ModeEstimate`.
        source: "probe", or "runs" where an earlier run of the same shape had this speed; empty where nothing is known.
        step_s: Seconds of a step, exchange included.
        exchange_s: Of that, spent in the exchange.
        sent_bytes: By each rank in a step.
        samples_per_s, tokens_per_s: Of all ranks together; tokens None where the recipe has none.
        speedup: Samples a second ÷ those of one device.
        hours: Of training on as many samples as the run in its own mode.
        power_w: Mean power of its GPUs; None without an energy counter.
        kwh: Used by them in these hours.
        cost: Of energy and GPU hours, as far as their prices and the energy are known.
        reason: Why the time is not known.
        error: A speed-up that is no more than this, up or down, may be none.
    """

    name: str
    source: str = ""
    step_s: float | None = None
    exchange_s: float | None = None
    sent_bytes: float | None = None
    samples_per_s: float | None = None
    tokens_per_s: float | None = None
    speedup: float | None = None
    hours: float | None = None
    power_w: float | None = None
    kwh: float | None = None
    cost: float | None = None
    reason: str = ""
    error: float = WORTH

    @property
    def gain(self) -> Gain:
        """Against one device, where it is more than the error."""
        if self.speedup is None:
            return "unknown"
        return "faster" if self.speedup >= 1 + self.error else "slower" if self.speedup <= 1 - self.error else "same"


def estimate_times(
    run: ResolvedRun, figures: ModelFigures, found: TimeFigures, prices: Prices
) -> tuple[TimeEstimate, ...]:
    """A run's time in every mode, in the order of `core.measure.estimate.modes.estimate_modes`."""
    one, *others = [_in_mode(other, figures, found) for other in mode_runs(run)]
    error = max(WORTH, USUAL_ERROR if found.error is None else found.error)
    tokens = next((steps.tokens_per_sample for steps in found.steps.values()), 0)
    # None where epochs or a goal decide how long the run is.
    samples = None if run.config.steps is None else run.config.steps * run.batch.global_ * run.replica_groups

    def completed(time: TimeEstimate, gpus: int) -> TimeEstimate:
        """A speed beside one device's, and what the whole run takes at it."""
        rate = time.samples_per_s
        if rate is None:
            return time
        hours = None if samples is None else samples / rate / 3600
        kwh = None if hours is None or time.power_w is None else time.power_w * hours / 1000
        return replace(
            time,
            tokens_per_s=rate * tokens if tokens else None,
            speedup=rate / one.samples_per_s if one.samples_per_s else None,
            hours=hours,
            kwh=kwh,
            cost=_cost(gpus, hours, kwh, prices),
            error=WORTH if {one.source, time.source} == {"runs"} else error,
        )

    gpus = sum(device.kind == "cuda" for device in run.devices)
    return (completed(one, int(run.devices[0].kind == "cuda")), *(completed(time, gpus) for time in others))


def time_of(times: tuple[TimeEstimate, ...], run: ResolvedRun) -> TimeEstimate:
    """That of the mode which a run was resolved to."""
    name = mode_name(run)
    return next(time for time in times if time.name == name)


def _in_mode(other: ModeRun, figures: ModelFigures, found: TimeFigures) -> TimeEstimate:
    name = other.variant.name
    return TimeEstimate(name, reason=other.reason) if other.run is None else _speed(other.run, figures, found)


def _speed(run: ResolvedRun, figures: ModelFigures, found: TimeFigures) -> TimeEstimate:
    """A run's speed in its own mode, or why it is not known."""
    name, past = mode_name(run), found.past.get(mode_name(run))
    steps = [found.steps.get(step_key(device, run)) for device in run.devices]
    known = [one for one in steps if one is not None]
    power_w = _power_w(run, known, past)
    if past is not None:
        return TimeEstimate(name, "runs", past.step_s, samples_per_s=past.samples_per_s, power_w=power_w)
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
    sent = traffic.sent_bytes(run.world_size)
    return TimeEstimate(name, "probe", step_s, exchange_s, sent, rate, power_w=power_w)


@dataclass(frozen=True, slots=True)
class BalanceGain:
    """What load balancing would bring, from steps that were timed on each device.

    Attributes:
        speedup: Time of a step in equal shares ÷ in shares by speed.
        shares: Samples of a batch for each device, in the run's order.
        waiting: Which device waits longest in equal shares, by its place in the run.
        waits: What share of each step it waits.
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
    """What load balancing would bring; None where it cannot be used, is used, was not measured, or is not worth it."""
    if not can_balance(run):
        return None
    steps = [found.steps.get(step_key(device, run)) for device in run.devices]
    known = [one for one in steps if one is not None]
    timed = replace(found, past={})
    equal = _speed(run, figures, timed)
    shared = _speed(replace(run, config=run.config.replace(balance="measured")), figures, timed)
    if len(known) < len(steps) or equal.step_s is None or shared.step_s is None:
        return None
    speedup = equal.step_s / shared.step_s
    if speedup < 1 + max(WORTH, found.error or 0.0):
        return None
    rates = [1 / one.samples_s(1) for one in known]
    shares = tuple(round(run.batch.global_ * rate / sum(rates)) for rate in rates)
    own = [one.step_s(run.batch, 1.0) for one in known]
    return BalanceGain(speedup, shares, own.index(min(own)), 1 - min(own) / equal.step_s)


def _balanced_s(run: ResolvedRun, steps: list[StepFigures]) -> float:
    """Seconds of a step whose samples are shared out so that all devices finish together, without exchange."""
    rate = sum(1 / one.samples_s(1) for one in steps)
    return run.batch.global_ / rate + max(one.update_s for one in steps)


def _power_w(run: ResolvedRun, steps: list[StepFigures], past: PastRun | None) -> float | None:
    """Of all GPUs; None where one of them has no counter, or there is none."""
    if past is not None and past.power_w is not None:
        return past.power_w
    powers = [one.power_w for one in steps if one.power_w is not None]
    return sum(powers) if run.devices[0].kind == "cuda" and len(powers) == run.world_size else None


def _cost(gpus: int, hours: float | None, kwh: float | None, prices: Prices) -> float | None:
    """Of energy and GPU hours, as far as they and their prices are known; None: of neither."""
    energy = None if kwh is None or prices.kwh is None else kwh * prices.kwh
    time = None if hours is None or not gpus or prices.gpu_hour is None else hours * gpus * prices.gpu_hour
    return None if energy is None and time is None else (energy or 0.0) + (time or 0.0)
