"""Overview of an estimate: all that is shown of it, by the command line and in the window."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final

from core.errors import sentences
from core.estimate.advice import advice
from core.estimate.estimate import ModeEstimate, estimate_modes, estimate_run, least_figures, worst_need
from core.estimate.figures import Baselines, ModelFigures
from core.estimate.free import Free
from core.estimate.prices import NO_PRICES, Prices
from core.estimate.probe import known_baselines, known_figures
from core.estimate.remedies import Remedy, as_fitted, remedies
from core.estimate.speed import TimeEstimate, TimeFigures, estimate_times, time_of
from core.launch.micro_batch_memory import RememberedBatch
from core.launch.resolved import ResolvedRun
from core.recipes.parameter_formula import model_size

USUAL_CONTEXT_NOTE: Final = (
    "What CUDA takes of a GPU for each process could not be measured, as other programs use it: 0.5 GiB is assumed."
)


@dataclass(frozen=True, slots=True)
class Overview:
    """A run beside what is free.

    Attributes:
        run: As it would start now.
        figures: Of its model.
        free: What is free.
        chosen: It in its own mode.
        modes: It in every mode.
        remedies: What would make it fit, if it does not, or if memory ran out with it before.
        times: Its time in every mode, in the same order; empty while nothing was measured.
        advice: What these figures recommend, in one sentence; may be empty.
        prices: What the costs are made of.
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
    prices: Prices = NO_PRICES
    time_note: str = ""

    @property
    def time(self) -> TimeEstimate | None:
        """In its own mode."""
        return time_of(self.times, self.run) if self.times else None

    @property
    def note(self) -> str:
        """What is not known of the memory, as sentences."""
        is_gpu, figures = self.run.devices[0].kind == "cuda", self.figures
        assumed = is_gpu and figures.is_measured and not figures.is_context_known
        return sentences(self.figures.note, USUAL_CONTEXT_NOTE if assumed else "")

    def as_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "recipe": self.run.recipe.name,
            "devices": [device.uuid for device in self.run.devices],
            "mode": self.chosen.name,
            "parameters": self.figures.parameters,
            "trainable": self.figures.trainable,
            "is_measured": self.figures.is_measured,
            "note": self.note,
            "free": {
                "ram_bytes": self.free.ram,
                "commit_bytes": self.free.commit,
                "disk_bytes": self.free.disk,
            },
            "modes": [_mode_values(mode, time) for mode, time in zip(self.modes, self._times, strict=True)],
            "remedies": [dataclasses.asdict(remedy) for remedy in self.remedies],
            "advice": self.advice,
            "currency": self.prices.currency,
            "time_note": self.time_note,
        }

    @property
    def _times(self) -> tuple[TimeEstimate | None, ...]:
        return self.times or (None,) * len(self.modes)


def overview(
    run: ResolvedRun,
    figures: ModelFigures,
    baselines: Baselines,
    free: Free,
    time: TimeFigures | None = None,
    prices: Prices = NO_PRICES,
    kept: RememberedBatch | None = None,
) -> Overview:
    """A run's overview. Pure, and quick.

    Args:
        run: What would be trained.
        figures: Of its model.
        baselines: Of bare ranks.
        free: What is free.
        time: What is known of its time; None: nothing yet.
        prices: Of energy and of devices.
        kept: The batch that was left when memory ran out with this model on these devices; None: it never did.
    """
    after_shortage = () if kept is None else (as_fitted(run, kept.batch, figures, baselines, free),)
    modes = estimate_modes(run, figures, baselines, free)
    times = () if time is None else estimate_times(run, figures, time, prices)
    return Overview(
        run,
        figures,
        free,
        estimate_run(run, figures, baselines, free),
        modes,
        (*after_shortage, *remedies(run, figures, baselines, free)),
        times,
        advice(run, modes, times, prices) if times else "",
        prices,
        "" if time is None else time.note,
    )


def fit_note(run: ResolvedRun, free: Free) -> str:
    """Why a run does not fit, as a sentence, by what is known without measuring; empty where it may fit."""
    figures, baselines = known_figures(run), known_baselines(run.platform)
    if figures is None or baselines is None:
        size = model_size(run.recipe.parameters, run.config)
        if size is None:
            return ""
        figures, baselines = least_figures(size, run.world_size), Baselines()
    made = estimate_run(run, figures, baselines, free)
    if made.verdict != "too_large":
        return ""
    need = worst_need(made, free)
    return f"The run probably does not fit {need.place}: it {need.text}."


def _mode_values(made: ModeEstimate, time: TimeEstimate | None) -> dict[str, Any]:
    if made.reason:
        return {"mode": made.name, "reason": made.reason}
    return {
        "time": None if time is None else _time_values(time),
        "mode": made.name,
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
                "free_bytes": need.free_bytes,
                "verdict": need.verdict,
                **{f"{name}_bytes": value for name, value in need.memory.as_dict().items()},
            }
            for need in made.devices
        ],
    }


def _time_values(time: TimeEstimate) -> dict[str, Any]:
    values = dataclasses.asdict(time)
    del values["name"]
    return {**values, "gain": time.gain}
