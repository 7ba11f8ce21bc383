"""Overview of an estimate, as the command line and the window show it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.config.mode import Mode
from core.errors import sentences
from core.formatting import number
from core.launch.resolved import ResolvedRun
from core.measure.estimate.figures import Baselines, ModelFigures, least_figures
from core.measure.estimate.free import Free
from core.measure.estimate.modes import ModeEstimate, estimate_modes, estimate_run
from core.measure.estimate.probe import known_baselines, known_figures
from core.measure.estimate.remedies import Remedy, remedies
from core.measure.estimate.speed import NO_STEP, USUAL_ERROR, TimeEstimate, TimeFigures, estimate_times, time_of
from core.recipes.parameter_formula import model_size

USUAL_CONTEXT_NOTE: Final = (
    "What CUDA takes of a GPU for each process could not be measured, as other programs use it: 0.5 GiB is assumed."
)


@dataclass(frozen=True, slots=True)
class Overview:
    """The memory and time of a run, beside the free memory.

    Attributes:
        run: As it would start now.
        chosen: The run in its own mode.
        remedies: Changes that would make it fit, if it does not.
        times: In every mode, in the order of `modes`; empty while nothing was measured.
        advice: The recommended devices and mode, in one sentence; may be empty.
        time_note: Why something of the time is not known.
    """

    run: ResolvedRun
    figures: ModelFigures
    free: Free
    chosen: ModeEstimate
    modes: tuple[ModeEstimate, ...]
    remedies: tuple[Remedy, ...]
    times: tuple[TimeEstimate, ...] = ()
    advice: str = ""
    time_note: str = ""

    @property
    def time(self) -> TimeEstimate | None:
        """The time in its own mode."""
        return time_of(self.times, self.run) if self.times else None

    @property
    def note(self) -> str:
        """Sentences on the parts of the memory that are not known."""
        is_gpu, figures = self.run.devices[0].kind == "cuda", self.figures
        assumed = is_gpu and figures.is_measured and not figures.is_context_known
        return sentences(self.figures.note, USUAL_CONTEXT_NOTE if assumed else "")

    def as_dict(self) -> dict[str, Any]:
        return {
            "recipe": self.run.recipe.name,
            "devices": [device.uuid for device in self.run.devices],
            "mode": self.chosen.variant.name,
            "parameters": self.figures.parameters,
            "trainable": self.figures.trainable,
            "is_measured": self.figures.is_measured,
            "note": self.note,
            "free": {
                "ram_bytes": self.free.ram,
                "commit_bytes": self.free.commit,
                "disk_bytes": self.free.disk,
            },
            "modes": [
                _mode_values(mode, time)
                for mode, time in zip(self.modes, self.times or (None,) * len(self.modes), strict=True)
            ],
            "remedies": [dataclasses.asdict(remedy) for remedy in self.remedies],
            "advice": self.advice,
            "time_note": self.time_note,
        }


def overview(
    run: ResolvedRun, figures: ModelFigures, baselines: Baselines, free: Free, time: TimeFigures | None = None
) -> Overview:
    """Estimate a run in every mode; `time` is None where nothing of it is known yet. Pure, and quick."""
    modes = estimate_modes(run, figures, baselines, free)
    times = () if time is None else estimate_times(run, figures, time)
    return Overview(
        run,
        figures,
        free,
        estimate_run(run, figures, baselines, free),
        modes,
        remedies(run, figures, baselines, free),
        times,
        advice(run, modes, times) if times else "",
        "" if time is None else time.note,
    )


def fit_note(run: ResolvedRun, free: Free) -> str:
    """Why a run does not fit, as a sentence, without measuring anything; empty where it may fit."""
    figures, baselines = known_figures(run), known_baselines(run.platform)
    if figures is None or baselines is None:
        size = model_size(run.recipe.parameters, run.config)
        if size is None:
            return ""
        figures, baselines = least_figures(size, run.world_size), Baselines()
    made = estimate_run(run, figures, baselines, free)
    if made.verdict != "too_large":
        return ""
    return f"The run probably does not fit {made.worst.place}: it {made.worst.text}."


def _mode_values(made: ModeEstimate, time: TimeEstimate | None) -> dict[str, Any]:
    if made.reason:
        return {"mode": made.variant.name, "reason": made.reason}
    return {
        "time": None if time is None else _time_values(time),
        "mode": made.variant.name,
        "engine": made.engine,
        "batch": None if made.batch is None else dataclasses.asdict(made.batch),
        "verdict": made.verdict,
        "sentence": made.sentence(),
        "predicted_bytes": made.largest,
        "host_bytes": made.host_bytes,
        "commit_bytes": made.commit_bytes,
        "checkpoint_bytes": made.checkpoint_bytes,
        "disk_bytes": made.disk_bytes,
        "devices": [
            {
                "device": need.device.uuid,
                "free_bytes": need.need.free_bytes,
                "verdict": need.need.verdict,
                **{f"{name}_bytes": value for name, value in need.memory.as_dict().items()},
            }
            for need in made.devices
        ],
    }


def _time_values(time: TimeEstimate) -> dict[str, Any]:
    values = dataclasses.asdict(time)
    del values["name"]
    return {**values, "gain": time.gain}


def advice(run: ResolvedRun, modes: Sequence[ModeEstimate], times: Sequence[TimeEstimate]) -> str:
    """Recommend devices and a mode; empty for one device, and the reason where too little is known.

    Modes that do not fit are left out; so are independent ranks, which train models of their own, unless they were
    chosen.
    """
    if run.world_size < 2:
        return ""
    one = times[0]
    pairs = [
        (mode, time)
        for mode, time in zip(modes, times, strict=True)
        if mode.variant.mode != Mode.SINGLE and mode.variant.mode.is_apart == run.mode.is_apart
    ]
    if one.samples_per_s is None:
        return one.reason or NO_STEP
    usable = [(mode, time) for mode, time in pairs if not mode.reason and mode.verdict != "too_large"]
    known = [(mode, time) for mode, time in usable if time.speedup is not None]
    if not known:
        return next((time.reason for _, time in usable if time.reason), "")
    mode, time = max(known, key=lambda pair: pair[1].speedup or 0.0)
    devices = _devices(run)
    speedup = f"{number(time.speedup, 2)} × predicted"
    if modes[0].verdict == "too_large":
        return f"Use {devices} in {mode.variant.label}, since the model does not fit one: {speedup}."
    if time.gain == "same":
        error = f"{100 * USUAL_ERROR:.0f}\N{NO-BREAK SPACE}%"
        return f"Use one device: {devices} in {mode.variant.label} are about as fast ({speedup}, give or take {error})."
    if time.gain == "slower":
        return f"Use one device: {devices} in {mode.variant.label} are not faster ({speedup})."
    hours = ""
    if one.hours is not None and time.hours is not None:
        hours = f", {hours_text(abs(one.hours - time.hours))} {'less' if time.hours <= one.hours else 'more'}"
    return f"Use {devices} in {mode.variant.label}: {speedup}{hours}."


def _devices(run: ResolvedRun) -> str:
    kind = "cards" if all(device.kind == "cuda" for device in run.devices) else "devices"
    return f"both {kind}" if run.world_size == 2 else f"all {run.world_size} {kind}"


def hours_text(hours: float) -> str:
    """Format a time as people plan with it: "0.4 h", "12 h", "25 min", "40 s"."""
    if hours >= 0.1:
        return f"{number(hours, 2)} h"
    return f"{number(60 * hours, 2)} min" if hours >= 1 / 60 else f"{number(3600 * hours, 2)} s"
