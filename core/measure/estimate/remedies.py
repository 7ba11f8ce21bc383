"""Remedies: changes of settings that would make a run fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from core.config.mode import Mode
from core.errors import RankdeckError
from core.formatting import memory_size
from core.launch.resolved import ResolvedRun, resolve_on
from core.measure.estimate.figures import CHECKPOINTING, Baselines, ModelFigures
from core.measure.estimate.free import Free
from core.measure.estimate.modes import ModeEstimate, estimate_modes, estimate_run


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


def remedies(run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free) -> tuple[Remedy, ...]:
    """Find changes that make a run fit, the mildest first; those with figures are left out if they do not help."""
    if estimate_run(run, figures, baselines, free).verdict not in ("tight", "too_large"):
        return ()
    others = (*_other_modes(run, figures, baselines, free), *_fewer(run, figures, baselines, free))
    if figures.is_least:  # smaller passes do not help where not even the parameters fit
        return others
    return (*_smaller(run, figures, baselines, free), *_untried(run), *others)


def _smaller(run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free) -> Iterator[Remedy]:
    """Try the largest micro-batch that fits, with as much more accumulation: the global batch stays."""
    micro, accumulation = run.batch.micro, run.batch.accumulation
    for size in range(micro - 1, 0, -1):
        if micro % size:
            continue
        changes = {"batch_size": size, "grad_accum_steps": accumulation * micro // size}
        made = _changed(run, changes, figures, baselines, free)
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


def _other_modes(run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free) -> Iterator[Remedy]:
    """Try the first mode on all devices that shards more and fits."""
    if run.world_size < 2:
        return
    current = run.mode.variant(run.config.zero_stage)
    for made in estimate_modes(run, figures, baselines, free):
        helps = made.verdict == ("unknown" if figures.is_least else "fits")
        if made.variant.mode.is_sharded and helps and made.variant != current:
            label = made.variant.label
            yield Remedy("mode", label, f"Mode {label}", made.variant.settings, made.largest, made.verdict)
            return


def _fewer(run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free) -> Iterator[Remedy]:
    """Try the most devices that fit, where they share the machine's memory."""
    for count in range(run.world_size - 1, 0, -1):
        devices = run.devices[:count]
        config = run.config if count > 1 else run.config.replace(mode=Mode.SINGLE, sync_every=None)
        try:
            made = estimate_run(resolve_on(config, run.recipe, devices, run.platform), figures, baselines, free)
        except RankdeckError:
            continue
        if made.verdict == ("unknown" if figures.is_least else "fits"):
            changes = {"devices": [device.uuid for device in devices], "mode": made.variant.mode}
            name = "one device" if count == 1 else f"{count} devices"
            yield Remedy("devices", name.capitalize(), f"Train on {name}", changes, made.largest, made.verdict)
            return


def _changed(
    run: ResolvedRun, changes: Mapping[str, Any], figures: ModelFigures, baselines: Baselines, free: Free
) -> ModeEstimate | None:
    try:
        other = resolve_on(run.config.replace(**changes), run.recipe, run.devices, run.platform)
    except RankdeckError:
        return None
    return estimate_run(other, figures, baselines, free)
