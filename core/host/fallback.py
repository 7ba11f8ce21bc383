"""Fallbacks for an attempt whose ranks could not start: a retry, or a lesser way to train. Pure decisions.

The ladder, each rung reported with its reason: a retry without changes (a rank that was killed from outside proves
nothing about the machine) → PyTorch's engine in DeepSpeed's place → independent on all devices, where the recipe can →
one device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.config import RunConfig
from core.config.mode import Mode
from core.host.outcome import Outcome
from core.launch.mode import DEEPSPEED, TORCH
from core.launch.resolved import ResolvedRun
from core.launch.work_plan import independent_on_all, on_one_device, with_torchs_engine
from core.machine.devices import Device
from core.machine.devices.names import short_label


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """The attempt after one that could not start, with its metrics event (``retry`` or ``fallback``) and reason."""

    config: RunConfig
    devices: tuple[Device, ...]
    event: str
    fields: Mapping[str, Any]
    phase: str
    text: str


class StartFallbacks:
    """Chooses the attempt after a failed start; one for each host. `modes`: those that the recipe supports."""

    def __init__(self, modes: Sequence[Mode]) -> None:
        self._modes = modes
        self._retried = False
        # The last whose devices were to train in step.
        self._in_step: ResolvedRun | None = None

    def after(self, run: ResolvedRun, outcome: Outcome) -> NextAttempt | None:
        """Return the attempt that follows one of `run` with this outcome; None where the failure stands."""
        if outcome.kind != "not_started" or run.recipe.self_contained or run.config.strict or run.world_size == 1:
            return None
        if outcome.failure_kind:
            return None  # in the first step of all
        if self._in_step is None and (outcome.usage or run.replica_groups > 1):
            # The person's own input, or what the person chose.
            return None
        reason = outcome.error["cause"] if outcome.error else "Its ranks could not start."
        if not self._retried and outcome.root is not None and outcome.root.was_killed:
            self._retried = True
            fields = {"reason": reason, "mode": run.mode, "devices": _uuids(run.devices), "ranks": [outcome.root.rank]}
            return NextAttempt(run.config, run.devices, "retry", fields, "retrying", f"{reason} Retrying.")
        following = self._following(run, outcome, reason)
        if outcome.root is None:
            return following
        return replace(following, text=f"{following.text} See logs/{outcome.root.log.name} for details.")

    def _following(self, run: ResolvedRun, outcome: Outcome, reason: str) -> NextAttempt:
        on = f"on {run.world_size} devices"
        if run.choice.engine == DEEPSPEED:
            stage = f"ZeRO stage {run.config.zero_stage}"
            text = f"DeepSpeed could not start {stage} {on}, so PyTorch's engine is used instead. {reason}"
            fields = {"mode": run.mode, "engine": TORCH, "reason": reason}
            return _fallback(run, with_torchs_engine(run.config), run.devices, fields, "PyTorch's engine", text)
        if self._in_step is None and Mode.INDEPENDENT in self._modes:
            self._in_step = run
            config = independent_on_all(run.config, run.batch)
            text = (
                f"{run.mode.label} {on} could not start, so each device trains its own model on its share of the data, "
                f"and the best one is kept, never an average. {reason}"
            )
            fields = {"mode": Mode.INDEPENDENT, "merge_policy": config.merge_policy, "reason": reason}
            return _fallback(run, config, run.devices, fields, "independent training on all devices", text)
        in_step, guilty = self._in_step or run, outcome.root.rank if outcome.root is not None else 0
        device = next((d for rank, d in enumerate(run.devices) if rank != guilty), run.devices[0])
        title = "Independent training" if run.mode.is_apart else run.mode.label
        text = f"{title} {on} could not start, so the run continues on {short_label(device)} alone. {reason}"
        alone = on_one_device(in_step.config, device, in_step.batch)
        return _fallback(run, alone, (device,), {"mode": Mode.SINGLE, "reason": reason}, "one device", text)


def _fallback(
    run: ResolvedRun, config: RunConfig, devices: tuple[Device, ...], fields: Mapping[str, Any], to: str, text: str
) -> NextAttempt:
    fields = {**fields, "devices": _uuids(devices), "was": run.mode}
    return NextAttempt(config, devices, "fallback", fields, f"falling back to {to}", text)


def _uuids(devices: Sequence[Device]) -> list[str]:
    return [device.uuid for device in devices]
