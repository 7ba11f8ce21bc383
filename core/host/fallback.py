"""Fallbacks for an attempt whose ranks could not start: a retry, or a lesser way to train. Pure decisions.

The ladder, each rung reported with its reason: a retry without changes (a rank that was killed from outside says
nothing about the machine) → PyTorch's engine in DeepSpeed's place → independent on all devices, where the recipe can →
one device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.config import RunConfig
from core.config.batch import Batch
from core.config.mode import Mode
from core.host.outcome import Outcome
from core.host.work_plan import independent_on_all, on_one_device, with_torchs_engine
from core.launch.mode import DEEPSPEED, TORCH
from core.launch.plan import LaunchPlan
from core.launch.resolved import ResolvedRun
from core.machine.devices import Device
from core.machine.devices.names import short_label


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """The attempt that follows one that could not start.

    Attributes:
        config: What it trains.
        devices: What it trains on.
        event: The metrics event that says so: ``retry`` or ``fallback``.
        fields: The event's fields.
        phase: What the host does meanwhile, for the run's state.
        text: The decision and its reason, for a person.
    """

    config: RunConfig
    devices: tuple[Device, ...]
    event: str
    fields: Mapping[str, Any]
    phase: str
    text: str


class StartFallbacks:
    """Decides what follows a failed start; one for each host.

    Args:
        modes: Those that the recipe can be trained in.
    """

    def __init__(self, modes: Sequence[Mode]) -> None:
        self._modes = modes
        self._retried = False
        self._in_step: _InStep | None = None

    def after(self, run: ResolvedRun, plan: LaunchPlan, outcome: Outcome) -> NextAttempt | None:
        """The attempt to make next; None where the failure stands.

        Args:
            run: What the failed attempt was to train, and on what.
            plan: Its ranks.
            outcome: How it ended.
        """
        config, devices = run.config, run.devices
        if outcome.kind != "not_started" or plan.self_contained or config.strict or plan.world_size == 1:
            return None
        fell_to_independent = self._in_step is not None
        if not fell_to_independent and (outcome.usage or plan.replica_groups > 1):
            return None  # the person's own input, or what the person chose
        reason = outcome.error["cause"] if outcome.error else "Its ranks could not start."
        if not self._retried and outcome.root is not None and outcome.root.was_killed:
            self._retried = True
            return _once_more(config, devices, plan, outcome.root.rank, reason)
        if plan.engine == DEEPSPEED:
            following = _without_deepspeed(config, devices, plan, reason)
        elif not fell_to_independent and Mode.INDEPENDENT in self._modes:
            self._in_step = _InStep(config, run.batch)
            following = _independent(self._in_step, devices, plan, reason)
        else:
            in_step = self._in_step or _InStep(config, run.batch)
            following = _one_device(in_step, devices, plan, outcome, reason)
        if outcome.root is None:
            return following
        return replace(following, text=f"{following.text} See logs/{outcome.root.log.name} for details.")


@dataclass(frozen=True, slots=True)
class _InStep:
    """The last attempt whose devices were to train in step: lesser ways to train are derived from it."""

    config: RunConfig
    batch: Batch


def _once_more(
    config: RunConfig, devices: tuple[Device, ...], plan: LaunchPlan, killed: int, reason: str
) -> NextAttempt:
    uuids = [device.uuid for device in devices]
    fields = {"reason": reason, "mode": plan.mode, "devices": uuids, "ranks": [killed]}
    text = f"{reason} Retrying."
    return NextAttempt(config, devices, "retry", fields, "retrying", text)


def _without_deepspeed(config: RunConfig, devices: tuple[Device, ...], plan: LaunchPlan, reason: str) -> NextAttempt:
    uuids = [device.uuid for device in devices]
    fields = {"reason": reason, "mode": plan.mode, "devices": uuids, "was": plan.mode, "engine": TORCH}
    text = (
        f"DeepSpeed could not start ZeRO stage {config.zero_stage} on {plan.world_size} devices, so PyTorch's "
        f"engine is used instead. {reason}"
    )
    phase = "falling back to PyTorch's engine"
    return NextAttempt(with_torchs_engine(config), devices, "fallback", fields, phase, text)


def _independent(in_step: _InStep, devices: tuple[Device, ...], plan: LaunchPlan, reason: str) -> NextAttempt:
    config = independent_on_all(in_step.config, in_step.batch)
    uuids = [device.uuid for device in devices]
    fields = {
        "reason": reason,
        "mode": Mode.INDEPENDENT,
        "devices": uuids,
        "was": plan.mode,
        "merge_policy": config.merge_policy,
    }
    text = (
        f"{plan.mode.label} on {plan.world_size} devices could not start, so each device trains its own "
        f"model on its share of the data, and the best one is kept, never an average. {reason}"
    )
    phase = "falling back to independent training on all devices"
    return NextAttempt(config, devices, "fallback", fields, phase, text)


def _one_device(
    in_step: _InStep, devices: tuple[Device, ...], plan: LaunchPlan, outcome: Outcome, reason: str
) -> NextAttempt:
    guilty = outcome.root.rank if outcome.root is not None else 0
    device = next((d for rank, d in enumerate(devices) if rank != guilty), devices[0])
    fields = {"reason": reason, "mode": Mode.SINGLE, "devices": [device.uuid], "was": plan.mode}
    text = (
        f"{_titled(plan.mode)} on {plan.world_size} devices could not start, so the run continues on "
        f"{short_label(device)} alone. {reason}"
    )
    alone = on_one_device(in_step.config, device, in_step.batch)
    return NextAttempt(alone, (device,), "fallback", fields, "falling back to one device", text)


def _titled(mode: Mode) -> str:
    return "Independent training" if mode == Mode.INDEPENDENT else mode.label
