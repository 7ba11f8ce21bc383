"""Remedies: changes of settings that would make a run fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.config import RunConfig
from core.config.mode import Mode
from core.errors import RankdeckError
from core.formatting import memory_size
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices import Device
from core.measure.estimate.figures import CHECKPOINTING, Baselines, ModelFigures
from core.measure.estimate.free import Free, Verdict
from core.measure.estimate.modes import ModeEstimate, estimate_run, mode_runs


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change of settings.

    Attributes:
        kind: "micro_batch", "mode", "checkpointing", "precision" or "devices".
        label, text: For a small button; for a line.
        changes: Settings and their new values; a recipe's own under `options`.
        bytes: Of the largest rank afterwards; None where only another probe can tell.
        verdict: Afterwards.
    """

    kind: str
    label: str
    text: str
    changes: Mapping[str, Any]
    bytes: int | None = None
    verdict: str = "unknown"

    @property
    def tip(self) -> str:
        """The change, and the need of the run afterwards."""
        after = "measured once it is chosen" if self.bytes is None else f"{memory_size(self.bytes)} on a device"
        return f"{self.text}: {after}"


# An estimate of a run in the mode that it was resolved to.
_Estimate = Callable[[ResolvedRun], ModeEstimate]


def remedies(run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free) -> tuple[Remedy, ...]:
    """Find changes that make a run fit, the mildest first; those with figures are left out if they do not help."""

    def estimate(other: ResolvedRun) -> ModeEstimate:
        return estimate_run(other, figures, baselines, free)

    if estimate(run).verdict not in ("tight", "too_large"):
        return ()
    # Of parameters alone, more than that they may fit is not known.
    wanted: Verdict = "unknown" if figures.is_least else "fits"
    others = (*_other_modes(run, estimate, wanted), *_fewer(run, estimate, wanted))
    # Smaller passes do not help where not even the parameters fit.
    if figures.is_least:
        return others
    return (*_smaller(run, estimate), *_untried(run), *others)


def _smaller(run: ResolvedRun, estimate: _Estimate) -> Iterator[Remedy]:
    """Try the largest micro-batch that fits, with as much more accumulation: the global batch stays."""
    micro, accumulation = run.batch.micro, run.batch.accumulation
    for size in range(micro - 1, 0, -1):
        if micro % size:
            continue
        changes = {"batch_size": size, "grad_accum_steps": accumulation * micro // size}
        made = _changed(run, run.config.replace(**changes), run.devices, estimate)
        if made is not None and made.verdict == "fits":
            text = f"Micro-batch {size}, accumulation {changes['grad_accum_steps']} (the global batch stays)"
            label = f"Micro-batch {size} × {changes['grad_accum_steps']}"
            yield Remedy("micro_batch", label, text, changes, made.largest, made.verdict)
            return


def _untried(run: ResolvedRun) -> Iterator[Remedy]:
    """Offer changes of the passes themselves, whose effect is measured once they are chosen."""
    if run.config.options.get(CHECKPOINTING) is False:
        options = {CHECKPOINTING: True}
        text = "Gradient checkpointing (about a third slower)"
        yield Remedy("checkpointing", "Checkpointing", text, {"options": options})
    if run.config.precision == "fp32":
        yield Remedy("precision", "bf16", "Precision bf16", {"precision": "bf16"})


def _other_modes(run: ResolvedRun, estimate: _Estimate, wanted: Verdict) -> Iterator[Remedy]:
    """Try the first mode on all devices that shards more and fits."""
    if run.world_size < 2:
        return
    for other in mode_runs(run):
        variant = other.variant
        if other.run is None or not variant.mode.is_sharded or variant == run.mode.variant(run.config.zero_stage):
            continue
        made = estimate(other.run)
        if made.verdict == wanted:
            label = variant.label
            yield Remedy("mode", label, f"Mode {label}", variant.settings, made.largest, made.verdict)
            return


def _fewer(run: ResolvedRun, estimate: _Estimate, wanted: Verdict) -> Iterator[Remedy]:
    """Try the most devices that fit, where they share the machine's memory."""
    for count in range(run.world_size - 1, 0, -1):
        devices = run.devices[:count]
        config = run.config if count > 1 else run.config.replace(mode=Mode.SINGLE, sync_every=None)
        made = _changed(run, config, devices, estimate)
        if made is not None and made.verdict == wanted:
            changes = {"devices": [device.uuid for device in devices], "mode": made.variant.mode}
            name = "one device" if count == 1 else f"{count} devices"
            yield Remedy("devices", name.capitalize(), f"Train on {name}", changes, made.largest, made.verdict)
            return


def _changed(
    run: ResolvedRun, config: RunConfig, devices: Sequence[Device], estimate: _Estimate
) -> ModeEstimate | None:
    """Estimate the run with another config or fewer devices; None where that is not possible."""
    try:
        return estimate(resolve_on(config, run.recipe, devices, run.platform))
    except RankdeckError:
        return None
