"""What follows an attempt whose ranks could not start: the same once more, or a lesser way to train. Pure decisions.

The ladder, each rung said with its reason: as asked once more (a rank that was killed from outside says nothing about
the machine) → PyTorch's engine in DeepSpeed's place → independent on all devices → one device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.config import RunConfig
from core.devices import Device
from core.host.outcome import Outcome
from core.host.work_plan import on_one_device, with_torchs_engine
from core.launch_plan import LaunchPlan
from core.mode_choice import DEEPSPEED, MODE_NAMES, TORCH, pytorch_engine_note
from core.preflight import batch_of


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
    """Decides what follows a failed start; one for each host."""

    def __init__(self) -> None:
        self._retried = False

    def after(
        self, config: RunConfig, devices: tuple[Device, ...], plan: LaunchPlan, outcome: Outcome
    ) -> NextAttempt | None:
        """The attempt to make next; None where the failure stands.

        Args:
            config: What the failed attempt was to train.
            devices: What it was to train on, one rank each.
            plan: Its ranks.
            outcome: How it ended.
        """
        if outcome.kind != "not_started" or outcome.usage or plan.self_contained:
            return None
        if config.strict or plan.lanes > 1 or plan.world_size == 1:
            return None
        reason = outcome.error["cause"] if outcome.error else "Its ranks could not start."
        if not self._retried and outcome.root is not None and outcome.root.was_killed:
            self._retried = True
            return _once_more(config, devices, plan, outcome.root.rank, reason)
        if plan.engine == DEEPSPEED:
            return _without_deepspeed(config, devices, plan, reason)
        return _one_device(config, devices, plan, outcome, reason)


def _once_more(
    config: RunConfig, devices: tuple[Device, ...], plan: LaunchPlan, killed: int, reason: str
) -> NextAttempt:
    uuids = [device.uuid for device in devices]
    fields = {"reason": reason, "mode": plan.mode, "devices": uuids, "ranks": [killed]}
    text = f"{reason} Trying once more as asked."
    return NextAttempt(config, devices, "retry", fields, "trying once more as asked", text)


def _without_deepspeed(config: RunConfig, devices: tuple[Device, ...], plan: LaunchPlan, reason: str) -> NextAttempt:
    uuids = [device.uuid for device in devices]
    fields = {"reason": reason, "mode": plan.mode, "devices": uuids, "was": plan.mode, "engine": TORCH}
    text = (
        f"DeepSpeed could not start ZeRO stage {config.zero_stage} on {plan.world_size} devices, so PyTorch's own "
        f"engine shards instead. {reason}"
    )
    phase = "falling back to PyTorch's engine"
    return NextAttempt(with_torchs_engine(config), devices, "fallback", fields, phase, text)


def _one_device(
    config: RunConfig, devices: tuple[Device, ...], plan: LaunchPlan, outcome: Outcome, reason: str
) -> NextAttempt:
    guilty = outcome.root.rank if outcome.root is not None else 0
    device = next((d for rank, d in enumerate(devices) if rank != guilty), devices[0])
    fields = {"reason": reason, "mode": "single", "devices": [device.uuid], "was": plan.mode}
    text = (
        f"{MODE_NAMES[plan.mode]} on {plan.world_size} devices could not start, so the run continues on "
        f"{device.uuid} alone. {reason}"
    )
    batch = batch_of(config, plan.world_size, plan.mode)
    alone = on_one_device(config, device, batch)
    return NextAttempt(alone, (device,), "fallback", fields, "falling back to one device", text)


def launch_notes(
    asked: RunConfig, config: RunConfig, plan: LaunchPlan, notes: Sequence[str], weights: str
) -> list[str]:
    """What the launch event says of how an attempt trains.

    Args:
        asked: What the run was asked for.
        config: What this attempt trains; a fallback has changed it.
        plan: Its ranks.
        notes: What was found out before.
        weights: Where each rank's weights come from; empty: there is nothing to say.
    """
    engine = plan.engine_note
    if engine and config.zero_engine != asked.zero_engine:
        engine = pytorch_engine_note(config, "DeepSpeed could not start")
    return [note for note in (engine, *notes, *plan.notes, f"Weights: {weights}." if weights else "") if note]


def leftovers_alert(ended: Sequence[int], left: Sequence[int]) -> dict[str, Any]:
    """The fields of the alert about processes of an earlier attempt that still ran."""
    pids = ", ".join(map(str, sorted((*ended, *left))))
    cause = f"Processes of an earlier attempt still ran after its host had been killed (pid {pids})."
    next_step = "They were ended; there is nothing to do."
    if left:
        would_not = ", ".join(map(str, left))
        next_step = f"End them yourself: process {would_not} did not end, even when killed."
    return {"kind": "leftovers", "title": "Leftover processes were ended", "cause": cause, "next_step": next_step}
