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
from core.config.mode import Mode
from core.host.outcome import Outcome
from core.launch.mode import DEEPSPEED, TORCH
from core.launch.resolved import ResolvedRun
from core.launch.work_plan import independent_on_all, on_one_device, with_torchs_engine
from core.machine.devices import Device
from core.machine.devices.names import short_label


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """The next attempt after one that could not start.

    Attributes:
        event: The metrics event that says so: ``retry`` or ``fallback``.
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
    """Decides what follows a failed start; one for each host. `modes`: those that the recipe can be trained in."""

    def __init__(self, modes: Sequence[Mode]) -> None:
        self._modes = modes
        self._retried = False
        self._in_step: ResolvedRun | None = None  # the last whose devices were to train in step

    def after(self, run: ResolvedRun, outcome: Outcome) -> NextAttempt | None:
        """The attempt that follows one of `run` with this outcome; None where the failure stands."""
        if outcome.kind != "not_started" or run.recipe.self_contained or run.config.strict or run.world_size == 1:
            return None
        if outcome.failure_kind:
            return None  # in the first step of all
        if self._in_step is None and (outcome.usage or run.replica_groups > 1):
            return None  # the person's own input, or what the person chose
        reason = outcome.error["cause"] if outcome.error else "Its ranks could not start."
        if not self._retried and outcome.root is not None and outcome.root.was_killed:
            self._retried = True
            return _once_more(run, outcome.root.rank, reason)
        if run.choice.engine == DEEPSPEED:
            following = _without_deepspeed(run, reason)
        elif self._in_step is None and Mode.INDEPENDENT in self._modes:
            self._in_step = run
            following = _independent(run, reason)
        else:
            following = _one_device(run, self._in_step or run, outcome, reason)
        if outcome.root is None:
            return following
        return replace(following, text=f"{following.text} See logs/{outcome.root.log.name} for details.")


def _once_more(run: ResolvedRun, killed: int, reason: str) -> NextAttempt:
    fields = {"reason": reason, "mode": run.mode, "devices": _uuids(run), "ranks": [killed]}
    return NextAttempt(run.config, run.devices, "retry", fields, "retrying", f"{reason} Retrying.")


def _without_deepspeed(run: ResolvedRun, reason: str) -> NextAttempt:
    fields = {"reason": reason, "mode": run.mode, "devices": _uuids(run), "was": run.mode, "engine": TORCH}
    text = (
        f"DeepSpeed could not start ZeRO stage {run.config.zero_stage} on {run.world_size} devices, so PyTorch's "
        f"engine is used instead. {reason}"
    )
    phase = "falling back to PyTorch's engine"
    return NextAttempt(with_torchs_engine(run.config), run.devices, "fallback", fields, phase, text)


def _independent(run: ResolvedRun, reason: str) -> NextAttempt:
    config = independent_on_all(run.config, run.batch)
    fields = {
        "reason": reason,
        "mode": Mode.INDEPENDENT,
        "devices": _uuids(run),
        "was": run.mode,
        "merge_policy": config.merge_policy,
    }
    text = (
        f"{run.mode.label} on {run.world_size} devices could not start, so each device trains its own "
        f"model on its share of the data, and the best one is kept, never an average. {reason}"
    )
    phase = "falling back to independent training on all devices"
    return NextAttempt(config, run.devices, "fallback", fields, phase, text)


def _one_device(run: ResolvedRun, in_step: ResolvedRun, outcome: Outcome, reason: str) -> NextAttempt:
    guilty = outcome.root.rank if outcome.root is not None else 0
    device = next((d for rank, d in enumerate(run.devices) if rank != guilty), run.devices[0])
    fields = {"reason": reason, "mode": Mode.SINGLE, "devices": [device.uuid], "was": run.mode}
    title = "Independent training" if run.mode.is_apart else run.mode.label
    text = (
        f"{title} on {run.world_size} devices could not start, so the run continues on "
        f"{short_label(device)} alone. {reason}"
    )
    alone = on_one_device(in_step.config, device, in_step.batch)
    return NextAttempt(alone, (device,), "fallback", fields, "falling back to one device", text)


def _uuids(run: ResolvedRun) -> list[str]:
    return [device.uuid for device in run.devices]
